// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// What shows in a kernel's BTF whether the kernel has BTF of its own.
const (
	// A static initcall of kernel/bpf/sysfs_btf.c, which is compiled with CONFIG_DEBUG_INFO_BTF only (341dfcf8d78e).
	OwnBTFInit = "btf_vmlinux_init"
	// A struct of kernel/bpf/btf.c, which is compiled with CONFIG_DEBUG_INFO_BTF_MODULES only (36e68442d1af).
	OwnBTFModule = "btf_module"
	// A static initcall of kernel/bpf/inode.c: BTF that has it lists such functions (b2197755b263).
	BPFInit = "bpf_init"
)

// OwnBTFSetting is the setting with which kernels are built that have BTF of their own.
const OwnBTFSetting = "CONFIG_DEBUG_INFO_BTF"

// OwnBTFEvidence is what a kernel shows of having BTF of its own.
type OwnBTFEvidence struct {
	Configured, Set       bool   // its configuration is known, and has [OwnBTFSetting]
	Maker                 string // what made its BTF of DWARF, "" for BTF that came with it
	Init, Module, BPFInit bool   // its BTF has [OwnBTFInit], [OwnBTFModule] and [BPFInit]
}

// Settled reports whether the BTF says nothing more.
func (e *OwnBTFEvidence) Settled() bool { return e.Configured || e.Maker != "" }

// Decide says whether the kernel has BTF of its own, and by what that is decided: the configuration if it is known, then what made the BTF,
// then functions and types of the BTF, which may have been made elsewhere.
func (e *OwnBTFEvidence) Decide() (has btfc.OwnBTF, by string) {
	switch {
	case e.Set:
		return btfc.HasBTF, OwnBTFSetting
	case e.Configured:
		return btfc.WithoutBTF, "no " + OwnBTFSetting
	case e.Maker != "":
		return btfc.WithoutBTF, "types made from DWARF by " + e.Maker
	case e.Init:
		return btfc.HasBTF, "function " + OwnBTFInit
	case e.Module:
		return btfc.HasBTF, "struct " + OwnBTFModule
	case e.BPFInit:
		return btfc.WithoutBTF, "no function " + OwnBTFInit
	}
	return btfc.OwnBTFUnknown, ""
}

// OwnBTF says whether the kernel has BTF of its own when it runs. Its BTF is loaded in b. What [OwnBTFEvidence] does not say, the file that the
// kernel is from may show.
func (k *Kernel) OwnBTF(b *btf.BTF) btfc.OwnBTF {
	set := []byte("\n" + OwnBTFSetting + "=y\n")
	e := OwnBTFEvidence{
		Configured: k.Config != nil, Set: bytes.HasPrefix(k.Config, set[1:]) || bytes.Contains(k.Config, set), Maker: k.Made.By,
	}
	if !e.Settled() {
		for id := b.FirstID(); int(id) < b.NumTypes(); id++ {
			switch t := b.Type(id); t.Kind() {
			case btf.KindFunc:
				e.Init = e.Init || b.NameIs(t.NameOff, OwnBTFInit)
				e.BPFInit = e.BPFInit || b.NameIs(t.NameOff, BPFInit)
			case btf.KindStruct:
				e.Module = e.Module || b.NameIs(t.NameOff, OwnBTFModule)
			}
		}
	}
	if has, by := e.Decide(); by != "" || k.From == "" {
		return has
	}
	return k.From
}

// OwnBTFCounts says what WithoutBTF did.
type OwnBTFCounts struct {
	Left    int // kernels with BTF of their own, which are left out
	Unknown int // kernels that stay because it is not known
}

// WithoutBTF leaves out the kernels that have BTF of their own. It reads a kernel if no index says it, with up to jobs workers. Kernels
// that cannot be read stay. It returns an error if no kernel stays. It must be called before c is used otherwise, and after Distinct.
func (c *Corpus) WithoutBTF(ctx context.Context, jobs int) (n OwnBTFCounts, err error) {
	c.left = make(map[kernel.Key]bool)
	files := make([]*File, len(c.Files)) // nil for those without a kernel that stays
	var mu sync.Mutex
	err = workers.Each(ctx, jobs, len(c.Files), func(i int) error {
		f := c.Files[i]
		left, unknown, stays := make(map[string]bool), 0, 0
		f.eachOwnBTF(ctx, func(path string, key kernel.Key, has btfc.OwnBTF) {
			switch {
			case has == btfc.HasBTF:
				left[path] = true
				mu.Lock()
				c.left[key] = true
				mu.Unlock()
				return
			case has != btfc.WithoutBTF:
				unknown++
			}
			stays++
		})
		mu.Lock()
		defer mu.Unlock()
		n.Left, n.Unknown = n.Left+len(left), n.Unknown+unknown
		if stays == 0 && len(left) > 0 {
			return ctx.Err()
		}
		if files[i] = f; len(left) > 0 {
			some := *f
			some.left = left
			files[i] = &some
		}
		return ctx.Err()
	})
	if err != nil {
		return n, err
	}
	kept := c.Files[:0:0]
	for _, f := range files {
		if f != nil {
			kept = append(kept, f)
		}
	}
	c.Files = kept
	c.Unselected += n.Left
	if len(kept) == 0 {
		return n, fmt.Errorf("%s: no kernel is without BTF of its own (%s with it)", strings.Join(c.Sources, ", "), words.Plural(n.Left, "kernel"))
	}
	return n, nil
}

// eachOwnBTF calls yield for each kernel of a file. It makes no BTF of DWARF, and ignores kernels that cannot be read.
func (f *File) eachOwnBTF(ctx context.Context, yield func(path string, key kernel.Key, has btfc.OwnBTF)) {
	if f.btfc != nil {
		if has := f.btfc.entryOf().HasOwnBTF(); has != "" {
			yield(f.Path, f.Key, has)
			return
		}
	}
	file, opts := *f, *f.opts
	if opts.DWARF != nil {
		opts.DWARF = opts.DWARF.Disabled()
	}
	if !opts.Extras && f.btfc == nil {
		file.files = append(slices.Clip(f.files), extraFiles(&f.files[0])...)
	}
	opts.Modules, opts.Extras = selection.NoModules(), true
	file.opts = &opts
	file.Read(ctx, func(k *Kernel) error {
		var b btf.BTF
		if err := k.LoadBTF(ctx, &b); err == nil {
			yield(k.Path, k.Key, k.OwnBTF(&b))
		}
		return nil
	})
}
