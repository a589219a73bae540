// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/extras"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/pahole"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/internal/corpus/unpack"
	"github.com/btfgen/btfgen/internal/limits"
)

// assembler puts kernels together from the BTF that is added, and yields them.
//
// A kernel is pending until the next one begins, since its modules come before that. If modules are in other files, all kernels are
// pending until the end.
type assembler struct {
	*reading
	yield func(*Kernel) error
	first func(btf []byte) // takes the first kernel's BTF and ends the reading, if it is set

	pending []blob

	seen  int   // BTF blobs and unwanted modules
	found int   // kernels, yielded or not selected
	ends  int   // how often kernels were yielded
	split int64 // bytes of pending modules
	full  bool  // no more modules fit
	sized bool  // SourceSize has been given out

	links  tarLinks     // links in the file being read
	extras []extra      // their kernels are not complete yet
	dwarf  pahole.Spool // modules with DWARF that wait for their kernel
}

// blob is BTF of a kernel or a module.
type blob struct {
	path   string
	member string
	data   []byte // the BTF, in a.mem or mapped from its file
	mapped bool
	base   []byte // BTF that a module was encoded on, if that is not its kernel's; memory of a.mem
	split  bool
	used   bool
	module string // name, once it is taken
	file   *diskFile
	arch   string // shown by the content
	rel    string // release, as the content or a package's tree shows
	own    string // release of the kernel of an image, which counts more than names
	made   btfc.Made
	from   btfc.OwnBTF
	dwarf  *io.SectionReader // a module without BTF
}

// add adds BTF, a kernel's or a module's.
func (a *assembler) add(in *unpack.Stream, b blob) error {
	a.seen++
	var err error
	if b.split, err = sniff.IsSplit(b.data); err != nil {
		a.drop(&b)
		return skip.Wrap(in.Path, "btf", err)
	}
	b.path, b.member, b.file = in.Path, in.Member, a.current
	if in.Image {
		b.own = imageRelease(in, b.rel)
	}
	b.rel = in.Release(b.rel)
	if b.split {
		a.addModule(in, &b)
	} else {
		a.begin(&b)
	}
	return nil
}

// imageRelease returns the release of the kernel of an image: that in the kernel, or in the header of the image.
func imageRelease(in *unpack.Stream, content string) string {
	return cmp.Or(naming.ValidRelease(content), in.Rel)
}

// drop gives the memory of b back, which was read last, instead of adding it.
func (a *assembler) drop(b *blob) {
	a.mem.Drop(b.data)
	a.mem.Drop(b.base)
}

// begin adds a kernel. It ends the one before, unless there are files with modules still to be read.
func (a *assembler) begin(b *blob) {
	if a.first != nil {
		a.first(b.data)
		a.Abort = errFirst
		a.drop(b)
		return
	}
	before, size := len(a.pending), int64(0)
	for i := range a.pending {
		if !a.pending[i].split {
			size += int64(len(a.pending[i].data))
		}
	}
	a.pending = append(a.pending, *b)
	wait := len(a.source.files) > 1 && size < a.source.opts.MaxSize
	if !wait && slices.ContainsFunc(a.pending[:before], isKernel) {
		a.end(before)
	}
}

// addModule adds a module, if it is wanted and fits.
func (a *assembler) addModule(in *unpack.Stream, b *blob) {
	if !a.room(in, len(b.data)+len(b.base)) {
		a.drop(b)
		return
	}
	a.pending = append(a.pending, *b)
}

// wantsModule reports whether to read a module's file.
func (a *assembler) wantsModule(name string) bool {
	if !a.full && a.source.opts.Modules.Has(name) {
		return true
	}
	a.seen++
	return false
}

// room reports whether a module is wanted and fits. It reports the first one that does not fit.
func (a *assembler) room(in *unpack.Stream, n int) bool {
	if a.full || a.source.opts.Modules.None() {
		return false
	}
	limit := a.source.opts.MaxSize
	if a.split+int64(n) > limit || len(a.pending) >= limits.Modules {
		a.Fail(skip.Wrap(in.Path, "btf", fmt.Errorf(
			"this and later modules left out: more than %d or %d MiB", limits.Modules, limit>>20)))
		a.full = true
		return false
	}
	a.split += int64(n)
	return true
}

func isKernel(b blob) bool { return !b.split }

// skip reports whether a kernel is not selected, before there is BTF of it. Such a kernel is not added.
func (a *assembler) skip(in *unpack.Stream, arch, rel string) bool {
	b := blob{member: in.Member, file: a.current, arch: arch, rel: in.Release(rel)}
	if in.Image {
		b.own = imageRelease(in, rel)
	}
	if key := a.key(&b, true); !key.Known() || a.source.opts.selectsMet(key) {
		return false
	}
	a.seen++
	a.found++
	return true
}

// attempt calls read, which reads a stream. If the stream is damaged, attempt drops the pending BTF of it.
func (a *assembler) attempt(read func() error) error {
	before, ends := len(a.pending), a.ends
	err := read()
	if err == nil {
		return nil
	}
	if a.ends != ends {
		before = 0
	}
	a.pending = a.pending[:min(before, len(a.pending))]
	return err
}

// end yields the kernels among the first n of the pending BTF with their modules. Modules without a kernel stay pending.
func (a *assembler) end(n int) {
	last := n == len(a.pending)
	for i := range n {
		if b := &a.pending[i]; !b.split {
			b.used = true
			if !a.Stopped() {
				a.finishKernel(b, last)
			}
		}
	}
	a.ends++
	a.full, a.split = false, 0
	before := len(a.pending)
	a.pending = slices.DeleteFunc(a.pending, func(b blob) bool { return b.used })
	for i := range a.pending {
		if b := &a.pending[i]; b.split {
			a.split += int64(len(b.data))
		}
	}
	if len(a.pending) < before && !a.Stopped() {
		a.Abort = a.shed()
	}
}

// shed gives the memory of what was yielded back. It copies what is still pending to other memory.
func (a *assembler) shed() (err error) {
	old := a.mem.Move()
	defer old.Release()
	for i := range a.pending {
		b := &a.pending[i]
		if b.mapped {
			continue
		}
		if !b.split {
			if err := a.mem.Grow(int64(len(b.data))); err != nil {
				return err
			}
		}
		if b.data, err = a.mem.Copy(b.data); err != nil {
			return err
		}
		if b.base == nil {
			continue
		}
		if b.base, err = a.mem.Copy(b.base); err != nil {
			return err
		}
	}
	for _, e := range a.extras {
		if err := a.mem.Hold(int64(len(e.data))); err != nil {
			return err
		}
	}
	return nil
}

// finish yields the kernels that are pending at the end of the file.
func (a *assembler) finish() {
	a.end(len(a.pending))
	a.pending = slices.DeleteFunc(a.pending, func(b blob) bool { return b.dwarf != nil })
	if len(a.pending) == 0 {
		return
	}
	err := ErrNoKernel
	if n := len(a.pending); n > 1 {
		err = fmt.Errorf("%w, and %d more", err, n-1)
	}
	a.Fail(skip.Wrap(a.pending[0].path, "", err))
}

// extra is an extra that was read.
type extra struct {
	kind   naming.Extra
	file   *diskFile
	member string
	rel    string
	data   []byte
}

// addExtra reads a stream with an extra.
func (a *assembler) addExtra(in *unpack.Stream) error {
	var data []byte
	var err error
	what := in.Extra.String()
	if in.Extra == naming.Config {
		data, err = extras.ReadConfig(in.Reader)
	} else {
		data, err = extras.ReadSymbols(in.Reader)
	}
	if err != nil {
		return skip.Wrap(in.Path, what, err)
	}
	if data == nil {
		return nil
	}
	if n := len(a.extras); n >= limits.Extras {
		return skip.Wrap(in.Path, what, fmt.Errorf("left out: more than %d wait for their kernels", limits.Extras))
	}
	if err := a.mem.Hold(int64(len(data))); err != nil {
		return err
	}
	_, rel := naming.ExtraOf(in.Member)
	a.extras = append(a.extras, extra{in.Extra, a.current, in.Member, cmp.Or(rel, in.Rel), data})
	return nil
}
