// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bufio"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
)

// Scratch is memory that reading kernels reuses, so that a run allocates little per kernel. It serves one File.Read at a time. The zero value
// is ready for use, and need not be closed.
type Scratch struct {
	btf    decompress.Buffer // the BTF of the kernel being put together, with its modules
	images stack[decompress.Buffer]
	inputs stack[bufio.Reader]

	packed btfc.Scratch

	maps    []mapping // of the file that is read
	pending []blob
	taken   []*blob // of pending, the modules of one kernel
	modules []core.Module
	paths   []string // of modules
	extras  []extra
}

// trim gives memory back that is above decompress.Keep.
func (s *Scratch) trim() {
	s.btf.Trim()
	for i := range s.images.items {
		s.images.items[i].Trim()
	}
	clear(s.pending[:cap(s.pending)])
	clear(s.taken[:cap(s.taken)])
	clear(s.modules[:cap(s.modules)])
	clear(s.paths[:cap(s.paths)])
	s.pending = s.pending[:0]
	s.extras = nil
}

// image returns an empty buffer. The caller pops it from images.
func (s *Scratch) image() *decompress.Buffer {
	buf := s.images.push(func() *decompress.Buffer { return new(decompress.Buffer) })
	buf.B = buf.B[:0]
	return buf
}

// stack hands out reusable values that are needed in a nested way.
type stack[T any] struct {
	items []*T
	depth int
}

func (s *stack[T]) push(create func() *T) *T {
	if s.depth == len(s.items) {
		s.items = append(s.items, create())
	}
	s.depth++
	return s.items[s.depth-1]
}

func (s *stack[T]) pop() { s.depth-- }
