// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
)

// Sketch measures how alike two kernels are. It has the smallest hash of each class, of the named types with their sizes and numbers
// of members.
type Sketch [64]uint32

// NewSketch returns the sketch of a kernel, nil if its BTF cannot be read.
func NewSketch(ctx context.Context, blob []byte) *Sketch {
	var b btf.BTF
	if b.Load(ctx, blob, nil) != nil {
		return nil
	}
	s := Sketch(slices.Repeat([]uint32{^uint32(0)}, len(Sketch{})))
	for id := range b.Named {
		t := b.Type(id)
		h := mix(uint64(t.Kind()), uint64(t.Vlen()))
		h = mix(h, uint64(t.Size()))
		for _, c := range t.Name() {
			h = mix(h, uint64(c))
		}
		i := h % uint64(len(s))
		s[i] = min(s[i], uint32(h>>32))
	}
	return &s
}

// alike returns how many classes agree; with nil, none do.
func (s *Sketch) alike(o *Sketch) (n int) {
	if o == nil {
		return 0
	}
	for i := range s {
		if s[i] == o[i] {
			n++
		}
	}
	return n
}

// Order returns the numbers of the sketches in the best order to add their kernels: each is as much as possible like one before it or in
// the file. The first one of a new file is most like all others. Kernels without a sketch come last.
func (w *Writer) Order(sketches []*Sketch) []int {
	order := make([]int, 0, len(sketches))
	nearest := make([]int, len(sketches)) // how much alike to those before, -1 for what is in order
	for i, s := range sketches {
		for j := range w.file.entries {
			if e := &w.file.entries[j]; s != nil && e.sketch != nil {
				nearest[i] = max(nearest[i], s.alike(e.sketch))
			}
		}
	}
	if len(w.file.entries) == 0 {
		first, most := 0, -1
		for i, s := range sketches {
			sum := 0
			for _, o := range sketches {
				if s != nil && o != nil {
					sum += s.alike(o)
				}
			}
			if s != nil && sum > most {
				first, most = i, sum
			}
		}
		if len(sketches) > 0 {
			nearest[first] = len(Sketch{}) + 1
		}
	}
	for range sketches {
		next := -1
		for i, n := range nearest {
			if n >= 0 && (next < 0 || n > nearest[next]) && (sketches[i] != nil || next < 0 || sketches[next] == nil) {
				next = i
			}
		}
		order = append(order, next)
		nearest[next] = -1
		for i, s := range sketches {
			if nearest[i] >= 0 && s != nil && sketches[next] != nil {
				nearest[i] = max(nearest[i], s.alike(sketches[next]))
			}
		}
	}
	return order
}
