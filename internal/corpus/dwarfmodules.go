// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/pahole"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/internal/corpus/unpack"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// encodes reports whether BTF is made of modules' DWARF. Modules of a kernel that came with BTF have theirs in another package.
func (a *assembler) encodes() bool {
	hasBTF := slices.ContainsFunc(a.pending, func(b blob) bool { return !b.split && b.made.By == "" })
	return !hasBTF && a.source.opts.DWARF.EncodesModules()
}

// addDWARF adds a module with DWARF. It is written to disk, since its BTF needs that of its kernel, which may come later.
func (a *assembler) addDWARF(in *unpack.Stream, file io.ReaderAt) error {
	a.seen++
	if !a.room(in, 0) {
		return nil
	}
	dwarf, err := a.dwarf.Add(a.Ctx, a.source.opts.DWARF, file)
	if err != nil {
		a.full = err == pahole.ErrSpoolFull
		return skip.Wrap(in.Path, "elf", err)
	}
	a.pending = append(a.pending, blob{
		path: in.Path, member: in.Member, file: a.current, rel: in.Release(""), split: true, dwarf: dwarf,
	})
	return nil
}

// encodeModules adds BTF of modules with DWARF to a kernel whose BTF was made of DWARF, too.
func (a *assembler) encodeModules(of *blob, k *Kernel) {
	var mods []*blob
	for i := range a.pending {
		if b := &a.pending[i]; b.dwarf != nil && !b.used && a.belongs(b, of, k.Key) {
			b.used, b.module = true, naming.ModuleName(b.member)
			mods = append(mods, b)
		}
	}
	if of.made.By == "" || len(mods) == 0 {
		return
	}
	slices.SortStableFunc(mods, func(x, y *blob) int {
		return cmp.Or(strings.Compare(x.module, y.module), strings.Compare(x.path, y.path))
	})
	base, err := a.source.opts.DWARF.Temporary()
	if err == nil {
		defer base.Close()
		_, err = base.Write(k.BTF)
	}
	if err != nil {
		a.Fail(skip.Wrap(k.Path, "", err))
		return
	}
	room := a.source.opts.MaxSize
	for _, b := range mods {
		if a.Stopped() {
			break
		}
		if n := len(k.Modules); n > 0 && k.Modules[n-1].Name == b.module {
			a.Fail(skip.Wrap(b.path, "", fmt.Errorf("second module %s", b.module)))
			continue
		}
		err := kernel.CheckName(b.module)
		if err == nil {
			b.data, err = a.source.opts.DWARF.EncodeModule(a.Ctx, b.dwarf, base, a.mem, room)
		}
		if err == nil {
			if split, wrong := sniff.IsSplit(b.data); wrong != nil || !split {
				err = cmp.Or(wrong, errors.New("pahole made no BTF of a module"))
			}
		}
		if err != nil {
			a.Fail(skip.Wrap(b.path, "module", err))
			continue
		}
		room -= int64(len(b.data))
		k.Modules = append(k.Modules, Module{Name: b.module, Path: b.path, BTF: b.data})
	}
}
