// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bufio"
	"sync"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
)

// scratch is memory that reading kernels reuses, so that a run allocates little per kernel. It serves one File.Read at a time.
type scratch struct {
	btf     decompress.Buffer // the BTF of the kernel being put together, with its modules
	maps    []mapping         // of the file that is read
	pending []blob
	extras  []extra
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// trim gives memory back that is above decompress.Keep.
func (s *scratch) trim() {
	s.btf.Trim()
	clear(s.pending[:cap(s.pending)])
	s.pending = s.pending[:0]
	s.extras = nil
}

var images = sync.Pool{New: func() any { return new(decompress.Buffer) }}

// image returns an empty buffer, and what gives it back.
func image() (buf *decompress.Buffer, done func()) {
	buf = images.Get().(*decompress.Buffer)
	return buf, func() {
		buf.Trim()
		images.Put(buf)
	}
}

var inputs = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, inputBuffer) }}

const inputBuffer = 128 << 10
