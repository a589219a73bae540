// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/limits"
)

// slabs has the BTF of modules. Unlike a buffer it is not copied when it grows: a kernel can have thousands of modules, with more than 50 MB.
type slabs struct {
	all  [][]byte // those before at are full, those behind it empty
	at   int
	size int64        // capacity of all
	task *limits.Task // holds the memory; may be nil
}

// slabSize is the capacity of a slab, unless it is one of the first or has a larger module.
const slabSize = 4 << 20

// use makes the memory that of a task, until trim.
func (s *slabs) use(t *limits.Task) error {
	if err := t.Take(s.size); err != nil {
		return err
	}
	s.task = t
	return nil
}

// add returns a copy of data, which is valid until reset or trim.
func (s *slabs) add(data []byte) ([]byte, error) {
	for s.at < len(s.all) && cap(s.all[s.at])-len(s.all[s.at]) < len(data) {
		s.at++
	}
	if s.at == len(s.all) {
		size := max(int64(len(data)), min(s.size, slabSize), slabSize/64)
		if err := s.task.Take(size); err != nil {
			return nil, err
		}
		s.all, s.size = append(s.all, make([]byte, 0, size)), s.size+size
	}
	slab := &s.all[s.at]
	first := len(*slab)
	*slab = append(*slab, data...)
	return (*slab)[first:len(*slab):len(*slab)], nil
}

// len returns the bytes that were added.
func (s *slabs) len() (n int) {
	for _, slab := range s.all {
		n += len(slab)
	}
	return n
}

// reset removes the content.
func (s *slabs) reset() {
	for i := range s.all {
		s.all[i] = s.all[i][:0]
	}
	s.at = 0
}

// trim removes the content, and the memory if it is more than decompress.Keep.
func (s *slabs) trim() {
	s.reset()
	s.task.Give(s.size)
	s.task = nil
	if s.size > decompress.Keep {
		*s = slabs{}
	}
}

// leave leaves the content to the caller, and goes on with other memory. The content counts as memory until give is called, once.
func (s *slabs) leave() (give func()) {
	give = s.task.Leave(s.size)
	*s = slabs{task: s.task}
	return give
}
