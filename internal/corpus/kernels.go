// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// blob is BTF in the buffer s.btf, or mapped from its file.
type blob struct {
	path   string
	member string
	off, n int
	mapped []byte
	base   []byte // what a module's BTF was encoded on, if that is not its kernel's
	split  bool
	used   bool
	module string // name, once it is taken
	part   *part
	arch   string // as the content shows
	rel    string // release, as the content or a package's tree shows
	made   btfc.Made
	dwarf  *io.SectionReader // a module without BTF
}

func (b *blob) bytes(s *scratch) []byte {
	if b.mapped != nil {
		return b.mapped
	}
	return s.btf.B[b.off : b.off+b.n : b.off+b.n]
}

// drop removes b, the last BTF in the buffer.
func (b *blob) drop(s *scratch) {
	if b.mapped == nil {
		s.btf.B = s.btf.B[:b.off]
	}
}

// add adds BTF to the pending ones. The second kernel of a file completes the first one, unless there are files with modules still to be
// read.
func (r *reader) add(in *input, b blob, arch, rel string) error {
	r.seen++
	data := b.bytes(r.s)
	var err error
	if b.split, err = isSplit(data); err != nil {
		b.drop(r.s)
		return wrap(in.path, "btf", err)
	}
	if !b.split && r.first != nil {
		r.first(data)
		r.abort = errFirst
		b.drop(r.s)
		return nil
	}
	if b.split && !r.room(in, len(data)+len(b.base)) {
		b.drop(r.s)
		return nil
	}
	b.path, b.member, b.part = in.path, in.member, r.current
	b.arch, b.rel = arch, in.release(rel)
	hold := len(r.f.parts) > 1 && int64(b.off) < r.f.opts.MaxSize
	if !b.split && !hold && slices.ContainsFunc(r.s.pending, isKernel) {
		r.flush(false)
		if b.mapped == nil {
			b.off = len(r.s.btf.B)
			if err := r.s.btf.Add(data); err != nil {
				return err
			}
		}
	}
	r.s.pending = append(r.s.pending, b)
	return nil
}

// release returns the release of a stream. One in a package's tree takes precedence over one in the content.
func (in *input) release(content string) string {
	return cmp.Or(releaseFromTree(in.member), validRelease(content), in.rel)
}

// room reports whether a module is wanted and fits. It reports the first one that does not fit.
func (r *reader) room(in *input, n int) bool {
	if r.full || r.f.opts.Modules.none() {
		return false
	}
	limit := r.f.opts.MaxSize
	if r.split+int64(n) > limit || len(r.s.pending) >= limits.Modules {
		r.fail(wrap(in.path, "btf", fmt.Errorf(
			"this and later modules left out: more than %d or %d MiB", limits.Modules, limit>>20)))
		r.full = true
		return false
	}
	r.split += int64(n)
	return true
}

func isKernel(b blob) bool { return !b.split }

// mark and forget drop the BTF of a damaged stream.
type mark struct{ flushes, pending int }

func (r *reader) mark() mark { return mark{r.flushes, len(r.s.pending)} }

func (r *reader) forget(m mark) {
	if m.flushes != r.flushes {
		m.pending = 0
	}
	r.s.pending = r.s.pending[:min(m.pending, len(r.s.pending))]
}

// flush yields the pending kernels with their modules. Modules without a kernel stay pending.
func (r *reader) flush(last bool) {
	for i := range r.s.pending {
		if b := &r.s.pending[i]; !b.split && !r.stopped() {
			r.kernel(b, last)
		}
	}
	r.flushes++
	r.s.pending = slices.DeleteFunc(r.s.pending, func(b blob) bool { return !b.split || b.used })
	r.split, r.full = r.s.compact(), false
}

// compact removes from the buffer what no pending BTF needs. It returns the bytes of the pending BTF.
func (s *scratch) compact() (all int64) {
	end := 0
	for i := range s.pending {
		b := &s.pending[i]
		all += int64(len(b.bytes(s)))
		if b.mapped == nil {
			copy(s.btf.B[end:], b.bytes(s))
			b.off = end
			end += b.n
		}
	}
	s.btf.B = s.btf.B[:end]
	return all
}

// finish yields the kernels that are pending at the end of the file.
func (r *reader) finish() {
	r.flush(true)
	r.s.pending = slices.DeleteFunc(r.s.pending, func(b blob) bool { return b.dwarf != nil })
	if len(r.s.pending) == 0 {
		return
	}
	err := ErrNoKernel
	if n := len(r.s.pending); n > 1 {
		err = fmt.Errorf("%w, and %d more", err, n-1)
	}
	r.fail(wrap(r.s.pending[0].path, "", err))
}

// kernel yields one kernel.
func (r *reader) kernel(b *blob, last bool) {
	r.found++
	single := last && (r.found == 1 || len(r.f.parts) > 1) && r.kernelsIn(b.part) == 1
	key := r.key(b, single)
	if !r.f.opts.selectsMet(key) {
		r.takeModules(b, key)
		x := r.takeExtras(b, key)
		r.s.task.Give(int64(len(x.Config) + len(x.Symbols)))
		return
	}
	k := Kernel{Key: key, Name: key.String(), Path: b.path, Arch: kernel.CanonicalArch(b.arch), BTF: b.bytes(r.s), Made: b.made, task: r.s.task}
	if !key.Known() {
		k.Name = b.path
		if single {
			k.Name = b.part.path
		}
	}
	k.Modules, k.ModulePaths = r.takeModules(b, key)
	if b.made.By != "" && len(k.Modules) > 0 {
		k.Modules, k.ModulePaths = nil, nil
		r.fail(wrap(b.path, "", errors.New("its modules' BTF is left out: it goes with other BTF than what "+b.made.By+" makes")))
	}
	made := r.encodeModules(b, &k)
	k.Extras = r.takeExtras(b, key)
	if !r.sized {
		k.SourceSize, r.sized = r.f.Size, true
	}
	r.abort = r.give(&k)
	r.s.task.Give(int64(len(k.Config)+len(k.Symbols)) + made)
	for _, err := range k.unfit {
		r.fail(err)
	}
}

// give yields a kernel. A panic of yield is an error of this kernel; with mapped files, guardMaps handles it.
func (r *reader) give(k *Kernel) (err error) {
	if len(r.s.maps) > 0 {
		return r.yield(k)
	}
	if d := workers.Catch(r.ctx, func() { err = r.yield(k) }); d != nil {
		r.fail(wrap(k.Path, "", d))
	}
	return err
}

// kernelsIn counts the pending kernels of one file on disk.
func (r *reader) kernelsIn(p *part) (n int) {
	for i := range r.s.pending {
		if b := &r.s.pending[i]; !b.split && b.part == p {
			n++
		}
	}
	return n
}

// key returns the key of a kernel, from its path and its content. The path of a tree takes precedence over the names inside a file with
// a single kernel.
func (r *reader) key(b *blob, single bool) kernel.Key {
	k := b.part.key
	var member kernel.Key
	if b.member != b.part.path {
		member = r.f.opts.key(b.member, b.member, "")
	}
	switch {
	case single && k.Known():
	case member.Known():
		k = member
	default:
		k.Release = cmp.Or(b.rel, member.Release, k.Release)
	}
	if k.Arch == "" {
		k.Arch = b.arch
	}
	if k.Release == "" && k.ID != "" && k.Arch != "" {
		k.Release = validRelease(stem(path.Base(b.member))) // a tree's vmlinux.btf
	}
	return k.Canonical()
}

// takeModules returns the pending modules that belong to a kernel, and their paths.
func (r *reader) takeModules(of *blob, key kernel.Key) (modules []relo.Module, paths []string) {
	var taken []*blob
	for i := range r.s.pending {
		if b := &r.s.pending[i]; b.split && b.dwarf == nil && !b.used && r.belongs(b, of, key) {
			b.used, b.module = true, moduleName(b.member)
			taken = append(taken, b)
		}
	}
	slices.SortStableFunc(taken, func(a, b *blob) int {
		return cmp.Or(strings.Compare(a.module, b.module), strings.Compare(a.path, b.path))
	})
	var kernelBTF lazyBTF
	for _, b := range taken {
		if !r.f.opts.Modules.has(b.module) {
			continue
		}
		if err := kernel.CheckName(b.module); err != nil {
			r.fail(wrap(b.path, "", fmt.Errorf("module: %w", err)))
			continue
		}
		if n := len(modules); n > 0 && modules[n-1].Name == b.module {
			r.fail(wrap(b.path, "", fmt.Errorf("second module %s", b.module)))
			continue
		}
		data := b.bytes(r.s)
		if b.base != nil {
			var err error
			if data, err = kernelBTF.relocate(r.ctx, of.bytes(r.s), data, b.base); err != nil {
				r.fail(wrap(b.path, "", fmt.Errorf("%w: %w", ErrUnfit, err)))
				continue
			}
		}
		modules, paths = append(modules, relo.Module{Name: b.module, BTF: data}), append(paths, b.path)
	}
	return modules, paths
}

// lazyBTF is the BTF of a kernel, which is loaded for the first module with a base of its own.
type lazyBTF struct {
	loaded *btf.BTF
	err    error
}

// relocate is btf.Relocate on top of a kernel. A base that is all of the kernel's BTF needs no relocation.
func (l *lazyBTF) relocate(ctx context.Context, kernel, module, base []byte) ([]byte, error) {
	if bytes.Equal(base, kernel) {
		return module, nil
	}
	if l.loaded == nil && l.err == nil {
		l.loaded = new(btf.BTF)
		l.err = l.loaded.Load(ctx, kernel, nil)
	}
	if l.err != nil {
		return nil, l.err
	}
	return btf.Relocate(ctx, module, base, l.loaded)
}

// belongs reports whether a module in the same file, or in one of its modules, is the kernel's: by the release in a package's tree, else by
// its directory.
func (r *reader) belongs(mod, kernel *blob, key kernel.Key) bool {
	if mod.part != kernel.part {
		return true
	}
	if mod.rel != "" && key.Release != "" {
		return mod.rel == key.Release
	}
	dir := path.Dir(mod.member)
	return dir == path.Dir(kernel.member) || path.Base(dir) == key.Release || within(dir, path.Dir(kernel.member))
}
