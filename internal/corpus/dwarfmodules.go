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
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// encodes reports whether BTF is made of modules' DWARF. Modules of a kernel that came with BTF have theirs in another package.
func (r *reader) encodes() bool {
	e := r.f.opts.DWARF
	return e != nil && e.slots != nil && !e.NoModules && !slices.ContainsFunc(r.s.pending, func(b blob) bool { return !b.split && b.made.By == "" })
}

// spill writes a module with DWARF to disk, since its BTF needs that of its kernel, which may come later.
func (r *reader) spill(in *input, file io.ReaderAt) error {
	r.seen++
	if !r.room(in, 0) {
		return nil
	}
	if r.spilled == nil {
		f, err := r.f.opts.DWARF.temporary()
		if err != nil {
			return wrap(in.path, "elf", err)
		}
		r.spilled = f
	}
	out := io.NewOffsetWriter(r.spilled, r.end)
	n, err := io.Copy(out, ctxReader{r.ctx, io.NewSectionReader(file, 0, limits.SpilledModules-r.end+1)})
	if err == nil && r.end+n > limits.SpilledModules {
		r.full = true
		err = fmt.Errorf("this and later modules left out: more than %d GiB with DWARF", limits.SpilledModules>>30)
	}
	if err != nil {
		return wrap(in.path, "elf", err)
	}
	r.s.pending = append(r.s.pending, blob{
		path: in.path, member: in.member, part: r.current, rel: in.release(""), split: true, dwarf: io.NewSectionReader(r.spilled, r.end, n),
	})
	r.end += n
	return nil
}

func (r *reader) closeSpilled() {
	if r.spilled != nil {
		r.spilled.Close()
	}
}

// encodeModules adds BTF of modules with DWARF to a kernel whose BTF was made of DWARF, too. It returns the bytes that it took of the task.
func (r *reader) encodeModules(of *blob, k *Kernel) (taken int64) {
	var mods []*blob
	for i := range r.s.pending {
		if b := &r.s.pending[i]; b.dwarf != nil && !b.used && r.belongs(b, of, k.Key) {
			b.used, b.module = true, moduleName(b.member)
			mods = append(mods, b)
		}
	}
	if of.made.By == "" || len(mods) == 0 {
		return 0
	}
	slices.SortStableFunc(mods, func(a, b *blob) int {
		return cmp.Or(strings.Compare(a.module, b.module), strings.Compare(a.path, b.path))
	})
	base, err := r.f.opts.DWARF.temporary()
	if err == nil {
		defer base.Close()
		_, err = base.Write(k.BTF)
	}
	if err != nil {
		r.fail(wrap(k.Path, "", err))
		return 0
	}
	for _, b := range mods {
		if r.stopped() {
			break
		}
		if n := len(k.Modules); n > 0 && k.Modules[n-1].Name == b.module {
			r.fail(wrap(b.path, "", fmt.Errorf("second module %s", b.module)))
			continue
		}
		var buf decompress.Buffer
		err := kernel.CheckName(b.module)
		if err == nil {
			err = r.f.opts.DWARF.encodeModule(r.ctx, b.dwarf, base, &buf, r.f.opts.MaxSize-taken)
		}
		if err == nil {
			if split, wrong := isSplit(buf.B); wrong != nil || !split {
				err = cmp.Or(wrong, errors.New("pahole made no BTF of a module"))
			}
		}
		if err == nil {
			err = r.s.task.Take(int64(len(buf.B)))
		}
		if err != nil {
			r.fail(wrap(b.path, "module", err))
			continue
		}
		taken += int64(len(buf.B))
		k.Modules, k.ModulePaths = append(k.Modules, relo.Module{Name: b.module, BTF: buf.B}), append(k.ModulePaths, b.path)
	}
	return taken
}
