// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"errors"
	"io"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/limits"
)

// scratch is memory that reading kernels reuses, so that a run allocates little per kernel. It serves one File.Read at a time.
type scratch struct {
	task    *limits.Task      // of this File.Read
	btf     decompress.Buffer // the BTF of the kernel being put together
	modules slabs             // the BTF of its modules
	maps    []mapping         // of the file that is read
	pending []blob
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// trim gives memory back that is above decompress.Keep.
func (s *scratch) trim() {
	s.btf.Trim()
	s.modules.trim()
	s.task = nil
	clear(s.pending[:cap(s.pending)])
	s.pending = s.pending[:0]
}

var images = sync.Pool{New: func() any { return new(decompress.Buffer) }}

// image returns an empty buffer, and what gives it back.
func (s *scratch) image() (buf *decompress.Buffer, done func(), err error) {
	buf = images.Get().(*decompress.Buffer)
	if err := buf.Use(s.task); err != nil {
		return nil, nil, err
	}
	return buf, func() {
		buf.Trim()
		images.Put(buf)
	}, nil
}

// guardMaps prepares this goroutine for files that change while they are mapped. Memory behind the end of a truncated file is gone, and
// checks of earlier content do not hold for a new one. Both cause run-time errors. The caller defers the function that it returns. That
// function replaces such an error with one of the changed file in err, and unmaps all files.
func (s *scratch) guardMaps(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		cause := recover()
		thrown, _ := cause.(error) // a workers.Defect if another goroutine panicked
		var fault runtime.Error
		faulted := errors.As(thrown, &fault)
		for i := range s.maps {
			m := &s.maps[i]
			if faulted && m.changed() {
				cause, *err = nil, skip.Wrap(m.path, "btf", errChanged)
			}
			unmap(m.data)
		}
		clear(s.maps)
		s.maps = s.maps[:0]
		if cause != nil {
			panic(cause)
		}
	}
}

// blob is BTF in the buffer s.btf, in the slabs s.modules, or mapped from its file.
type blob struct {
	path   string
	member string
	off, n int
	kept   []byte // in the slabs
	mapped []byte
	base   []byte // what a module's BTF was encoded on, if that is not its kernel's
	split  bool
	used   bool
	module string // name, once it is taken
	file   *diskFile
	arch   string // as the content shows
	rel    string // release, as the content or a package's tree shows
	own    string // release of the kernel of an image, which counts more than names
	made   btfc.Made
	from   btfc.OwnBTF
	dwarf  *io.SectionReader // a module without BTF
}

// buffered reports whether the blob is in the buffer.
func (b *blob) buffered() bool { return b.mapped == nil && b.kept == nil }

func (b *blob) bytes(s *scratch) []byte {
	switch {
	case b.mapped != nil:
		return b.mapped
	case b.kept != nil:
		return b.kept
	}
	return s.btf.B[b.off : b.off+b.n : b.off+b.n]
}
