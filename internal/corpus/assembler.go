// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
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
	*run
	yield func(*Kernel) error
	first func(btf []byte) // takes the first kernel's BTF and ends the run, if it is set

	seen  int   // BTF blobs and unwanted modules
	found int   // kernels, yielded or not selected
	ends  int   // how often kernels were yielded
	split int64 // bytes of pending modules
	full  bool  // no more modules fit
	sized bool  // SourceSize has been given out

	links  tarLinks     // of the file that is read
	extras []extra      // their kernels are not complete yet
	dwarf  pahole.Spool // modules with DWARF that wait for their kernel
}

// read returns the BTF that fill appends to a buffer. It has to be added before read is called again.
func (a *assembler) read(fill func(buf *decompress.Buffer) error) (blob, error) {
	buf := &a.s.btf
	off := len(buf.B)
	err := fill(buf)
	if err != nil {
		buf.B = buf.B[:off]
	}
	return blob{off: off, n: len(buf.B) - off}, err
}

// add adds BTF, a kernel's or a module's.
func (a *assembler) add(in *unpack.Stream, b blob) error {
	a.seen++
	var err error
	if b.split, err = sniff.IsSplit(b.bytes(a.s)); err != nil {
		a.drop(&b)
		return skip.Wrap(in.Path, "btf", err)
	}
	b.path, b.member, b.file = in.Path, in.Member, a.current
	if in.Image {
		b.own = imageRelease(in, b.rel)
	}
	b.rel = in.Release(b.rel)
	if b.split {
		return a.addModule(in, &b)
	}
	a.begin(&b)
	return nil
}

// imageRelease returns the release of the kernel of an image: that in the kernel, or in the header of the image.
func imageRelease(in *unpack.Stream, content string) string {
	return cmp.Or(naming.ValidRelease(content), in.Rel)
}

// drop removes b, the last BTF in the buffer, instead of adding it.
func (a *assembler) drop(b *blob) {
	if b.buffered() {
		a.s.btf.B = a.s.btf.B[:b.off]
	}
}

// begin adds a kernel. It ends the one before, unless there are files with modules still to be read.
func (a *assembler) begin(b *blob) {
	if a.first != nil {
		a.first(b.bytes(a.s))
		a.Abort = errFirst
		a.drop(b)
		return
	}
	before := len(a.s.pending)
	a.s.pending = append(a.s.pending, *b)
	wait := len(a.f.files) > 1 && int64(b.off) < a.f.opts.MaxSize
	if !wait && slices.ContainsFunc(a.s.pending[:before], isKernel) {
		a.end(before)
	}
}

// addModule adds a module, if it is wanted and fits.
func (a *assembler) addModule(in *unpack.Stream, b *blob) error {
	if !a.room(in, b.n+len(b.mapped)+len(b.base)) {
		a.drop(b)
		return nil
	}
	if b.buffered() {
		kept, err := a.s.modules.add(b.bytes(a.s))
		a.drop(b)
		if err != nil {
			return err
		}
		b.kept = kept
	}
	a.s.pending = append(a.s.pending, *b)
	return nil
}

// wantsModule reports whether to read a module's file.
func (a *assembler) wantsModule(name string) bool {
	if !a.full && a.f.opts.Modules.Has(name) {
		return true
	}
	a.seen++
	return false
}

// room reports whether a module is wanted and fits. It reports the first one that does not fit.
func (a *assembler) room(in *unpack.Stream, n int) bool {
	if a.full || a.f.opts.Modules.None() {
		return false
	}
	limit := a.f.opts.MaxSize
	if a.split+int64(n) > limit || len(a.s.pending) >= limits.Modules {
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
	if key := a.key(&b, true); !key.Known() || a.f.opts.selectsMet(key) {
		return false
	}
	a.seen++
	a.found++
	return true
}

// attempt calls read, which reads a stream. If the stream is damaged, attempt drops the pending BTF of it.
func (a *assembler) attempt(read func() error) error {
	before, ends := len(a.s.pending), a.ends
	err := read()
	if err == nil {
		return nil
	}
	if a.ends != ends {
		before = 0
	}
	a.s.pending = a.s.pending[:min(before, len(a.s.pending))]
	return err
}

// end yields the kernels among the first n of the pending BTF with their modules. Modules without a kernel stay pending.
func (a *assembler) end(n int) {
	last := n == len(a.s.pending)
	for i := range n {
		if b := &a.s.pending[i]; !b.split {
			b.used = true
			if !a.Stopped() {
				a.finishKernel(b, last)
			}
		}
	}
	a.ends++
	a.s.pending = slices.DeleteFunc(a.s.pending, func(b blob) bool { return b.used })
	a.compact()
	a.full = false
}

// compact removes from the buffer what no pending BTF needs, and all modules if none is pending.
func (a *assembler) compact() {
	end, buf := 0, &a.s.btf
	a.split = 0
	for i := range a.s.pending {
		b := &a.s.pending[i]
		if b.split {
			a.split += int64(len(b.bytes(a.s)))
		}
		if b.buffered() {
			copy(buf.B[end:], b.bytes(a.s))
			b.off = end
			end += b.n
		}
	}
	buf.B = buf.B[:end]
	if !slices.ContainsFunc(a.s.pending, func(b blob) bool { return b.kept != nil }) {
		a.s.modules.reset()
	}
}

// finish yields the kernels that are pending at the end of the file.
func (a *assembler) finish() {
	a.end(len(a.s.pending))
	a.s.pending = slices.DeleteFunc(a.s.pending, func(b blob) bool { return b.dwarf != nil })
	if len(a.s.pending) == 0 {
		return
	}
	err := ErrNoKernel
	if n := len(a.s.pending); n > 1 {
		err = fmt.Errorf("%w, and %d more", err, n-1)
	}
	a.Fail(skip.Wrap(a.s.pending[0].path, "", err))
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
	if err := a.s.task.Take(int64(len(data))); err != nil {
		return err
	}
	_, rel := naming.ExtraOf(in.Member)
	a.extras = append(a.extras, extra{in.Extra, a.current, in.Member, cmp.Or(rel, in.Rel), data})
	return nil
}
