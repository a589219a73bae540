// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/pahole"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/internal/corpus/unpack"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// encodes reports whether BTF is made of modules' DWARF. Modules of a kernel that came with BTF have theirs in another package.
func (a *assembler) encodes() bool {
	return a.f.opts.DWARF.EncodesModules() && !slices.ContainsFunc(a.s.pending, func(b blob) bool { return !b.split && b.made.By == "" })
}

// addDWARF adds a module with DWARF. It is written to disk, since its BTF needs that of its kernel, which may come later.
func (a *assembler) addDWARF(in *unpack.Stream, file io.ReaderAt) error {
	a.seen++
	if !a.room(in, 0) {
		return nil
	}
	dwarf, err := a.dwarf.Add(a.Ctx, a.f.opts.DWARF, file)
	if err != nil {
		a.full = err == pahole.ErrSpoolFull
		return skip.Wrap(in.Path, "elf", err)
	}
	a.s.pending = append(a.s.pending, blob{
		path: in.Path, member: in.Member, file: a.current, rel: in.Release(""), split: true, dwarf: dwarf,
	})
	return nil
}

// encodeModules adds BTF of modules with DWARF to a kernel whose BTF was made of DWARF, too. It returns the bytes that it took of the task.
func (a *assembler) encodeModules(of *blob, k *Kernel) (taken int64) {
	var mods []*blob
	for i := range a.s.pending {
		if b := &a.s.pending[i]; b.dwarf != nil && !b.used && a.belongs(b, of, k.Key) {
			b.used, b.module = true, naming.ModuleName(b.member)
			mods = append(mods, b)
		}
	}
	if of.made.By == "" || len(mods) == 0 {
		return 0
	}
	slices.SortStableFunc(mods, func(x, y *blob) int {
		return cmp.Or(strings.Compare(x.module, y.module), strings.Compare(x.path, y.path))
	})
	base, err := a.f.opts.DWARF.Temporary()
	if err == nil {
		defer base.Close()
		_, err = base.Write(k.BTF)
	}
	if err != nil {
		a.Fail(skip.Wrap(k.Path, "", err))
		return 0
	}
	for _, b := range mods {
		if a.Stopped() {
			break
		}
		if n := len(k.Modules); n > 0 && k.Modules[n-1].Name == b.module {
			a.Fail(skip.Wrap(b.path, "", fmt.Errorf("second module %s", b.module)))
			continue
		}
		var buf decompress.Buffer
		err := kernel.CheckName(b.module)
		if err == nil {
			err = a.f.opts.DWARF.EncodeModule(a.Ctx, b.dwarf, base, &buf, a.f.opts.MaxSize-taken)
		}
		if err == nil {
			if split, wrong := sniff.IsSplit(buf.B); wrong != nil || !split {
				err = cmp.Or(wrong, errors.New("pahole made no BTF of a module"))
			}
		}
		if err == nil {
			err = a.s.task.Take(int64(len(buf.B)))
		}
		if err != nil {
			a.Fail(skip.Wrap(b.path, "module", err))
			continue
		}
		taken += int64(len(buf.B))
		k.Modules = append(k.Modules, Module{Name: b.module, Path: b.path, BTF: buf.B})
	}
	return taken
}
