// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bufio"
	"sync"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/limits"
)

// memory limits the bytes of kernels that all File.Read of the process hold.
var memory = limits.NewMemory(limits.UnpackedInAll)

// scratch is memory that reading kernels reuses, so that a run allocates little per kernel. It serves one File.Read at a time.
type scratch struct {
	task    *limits.Task      // of this File.Read
	btf     decompress.Buffer // the BTF of the kernel being put together, with its modules
	maps    []mapping         // of the file that is read
	pending []blob
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// trim gives memory back that is above decompress.Keep.
func (s *scratch) trim() {
	s.btf.Trim()
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

var inputs = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, inputBuffer) }}

const inputBuffer = 128 << 10
