// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/btfc"
	"github.com/btfgen/btfgen/internal/defect"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// blob is BTF found on the way, in the buffer s.btf or mapped from its file.
type blob struct {
	path   string
	member string
	off, n int
	mapped []byte
	split  bool
	used   bool
	module string // name, once it is taken
	part   *part
	arch   string // as the content shows
	rel    string // release, as the content or a package's tree shows
	made   btfc.Made
}

func (b *blob) bytes(s *Scratch) []byte {
	if b.mapped != nil {
		return b.mapped
	}
	return s.btf.B[b.off : b.off+b.n : b.off+b.n]
}

// drop gives the buffer's end back, where b is what came last.
func (b *blob) drop(s *Scratch) {
	if b.mapped == nil {
		s.btf.B = s.btf.B[:b.off]
	}
}

// add notes BTF, of which the caller knows where it is. A second kernel completes the first, unless
// there are files with modules still to come.
func (r *reader) add(in *input, b blob, arch, rel string) error {
	r.seen++
	data := b.bytes(r.s)
	var err error
	if b.split, err = isSplit(data); err != nil {
		b.drop(r.s)
		return wrap(in.path, "btf", err)
	}
	if b.split && !r.room(in, len(data)) {
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
			r.s.btf.B = append(r.s.btf.B, data...)
		}
	}
	r.s.pending = append(r.s.pending, b)
	return nil
}

// release returns the release of what is read: the one in a package's tree goes before the one in the content.
func (in *input) release(content string) string {
	return cmp.Or(releaseFromTree(in.member), validRelease(content), in.rel)
}

// room says whether a module is wanted and fits. It notes once that one does not.
func (r *reader) room(in *input, n int) bool {
	if r.full || !r.f.opts.wantsModule(in.member) {
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

// mark and forget drop what came out of a stream that turned out damaged.
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
	if len(r.s.pending) == 0 {
		r.s.btf.B, r.split, r.full = r.s.btf.B[:0], 0, false
	}
}

// finish yields what is left at the end of the file.
func (r *reader) finish() {
	r.flush(true)
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
		r.takeExtras(b, key)
		return
	}
	k := Kernel{Key: key, Name: key.String(), Path: b.path, Arch: kernel.CanonicalArch(b.arch), BTF: b.bytes(r.s), Made: b.made}
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
	k.Extras = r.takeExtras(b, key)
	if !r.sized {
		k.SourceSize, r.sized = r.f.Size, true
	}
	r.abort = r.give(&k)
}

// give yields a kernel. If yield panics, that is an error of this kernel, unless a file that is
// mapped may have changed, which guardMaps finds out.
func (r *reader) give(k *Kernel) (err error) {
	if len(r.s.maps) > 0 {
		return r.yield(k)
	}
	if d := defect.Catch(r.ctx, func() { err = r.yield(k) }); d != nil {
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

// key puts together what path and content tell. A tree's path goes before what its files hold, where
// that is a single kernel, as in BTFHub's.
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
func (r *reader) takeModules(of *blob, key kernel.Key) ([]relolog.Module, []string) {
	s := r.s
	s.taken, s.modules, s.paths = s.taken[:0], s.modules[:0], s.paths[:0]
	for i := range s.pending {
		if b := &s.pending[i]; b.split && !b.used && r.belongs(b, of, key) {
			b.used, b.module = true, moduleName(b.member)
			s.taken = append(s.taken, b)
		}
	}
	slices.SortStableFunc(s.taken, func(a, b *blob) int {
		return cmp.Or(strings.Compare(a.module, b.module), strings.Compare(a.path, b.path))
	})
	for _, b := range s.taken {
		if err := kernel.CheckName(b.module); err != nil {
			r.fail(wrap(b.path, "", fmt.Errorf("module: %w", err)))
			continue
		}
		if n := len(s.modules); n > 0 && s.modules[n-1].Name == b.module {
			r.fail(wrap(b.path, "", fmt.Errorf("second module %s", b.module)))
			continue
		}
		s.modules, s.paths = append(s.modules, relolog.Module{Name: b.module, BTF: b.bytes(s)}), append(s.paths, b.path)
	}
	return s.modules, s.paths
}

// belongs says whether a module found in the same file, or in one that goes with it, is the
// kernel's: by the release in a package's tree, else by lying next to or below the kernel.
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
