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

// What shows in a kernel's BTF and configuration whether the kernel has BTF of its own.
const (
	ownBTFSetting = "CONFIG_DEBUG_INFO_BTF=y\n"
	// A static initcall of kernel/bpf/sysfs_btf.c, which is compiled with CONFIG_DEBUG_INFO_BTF only (341dfcf8d78e).
	ownBTFInit = "btf_vmlinux_init"
	// A struct of kernel/bpf/btf.c, which is compiled with CONFIG_DEBUG_INFO_BTF_MODULES only (36e68442d1af).
	ownBTFModule = "btf_module"
	// A static initcall of kernel/bpf/inode.c: BTF that has it lists such functions (b2197755b263).
	bpfInit = "bpf_init"
)

// OwnBTF says whether the kernel has BTF of its own when it runs. Its BTF is loaded in b. The configuration decides if it was read, then what
// made the BTF, then functions and types of the BTF, then the file that the kernel is from. Raw BTF may have been made elsewhere.
func (k *Kernel) OwnBTF(b *btf.BTF) btfc.OwnBTF {
	own, lists := false, false
	for id := b.FirstID(); int(id) < b.NumTypes(); id++ {
		switch t := b.Type(id); t.Kind() {
		case btf.KindFunc:
			own = own || b.NameIs(t.NameOff, ownBTFInit)
			lists = lists || b.NameIs(t.NameOff, bpfInit)
		case btf.KindStruct:
			own = own || b.NameIs(t.NameOff, ownBTFModule)
		}
	}
	switch {
	case bytes.HasPrefix(k.Config, []byte(ownBTFSetting)), bytes.Contains(k.Config, []byte("\n"+ownBTFSetting)):
		return btfc.HasBTF
	case k.Config != nil, k.Made.By != "":
		return btfc.WithoutBTF
	case own:
		return btfc.HasBTF
	case lists:
		return btfc.WithoutBTF
	case k.From != "":
		return k.From
	}
	return btfc.OwnBTFUnknown
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
	if f.packed != nil {
		if has := f.packed.entryOf().HasOwnBTF(); has != "" {
			yield(f.Path, f.Key, has)
			return
		}
	}
	file, opts := *f, *f.opts
	if opts.DWARF != nil {
		opts.DWARF = opts.DWARF.Disabled()
	}
	if !opts.Extras && f.packed == nil {
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
