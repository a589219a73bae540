// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
)

// Plan gives a kernel its place behind all those that were planned before. It returns false if the file has the kernel already. If the
// file has one of the same key with other content, the error is ErrOther. It may wait for others to be made.
func (w *Writer) Plan(ctx context.Context, k *Kernel) (added bool, err error) {
	e := &k.entry
	if o, ok := w.at[e.Key.Canonical()]; ok {
		if o.entry.Sum != e.Sum || o.entry.Modules != e.Modules || o.entry.ModulesSum != e.ModulesSum {
			return false, ErrOther
		}
		return false, nil
	}
	if len(w.kernels) == limits.CorpusKernels {
		return false, &limits.Exceeded{Max: limits.CorpusKernels, What: "kernels"}
	}
	select {
	case w.room <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if len(w.kernels) == 0 {
		w.source = k.from
	}
	if !w.copy(k) {
		w.chooseParents(ctx, k)
	}
	w.append(k)
	return true, nil
}

// copy plans a kernel whose chunks can be copied: the source has all of it, and the parents are copies.
func (w *Writer) copy(k *Kernel) bool {
	if k.from == nil || k.from != w.source {
		return false
	}
	e, o := &k.entry, &k.from.entries[k.fromNumber]
	if o.Sum != e.Sum || o.ModulesSum != e.ModulesSum || o.Config != e.Config || o.Symbols != e.Symbols {
		return false
	}
	for p := range numParts {
		if !e.has(p) {
			continue
		}
		var parent *Entry
		number := -1
		if i := o.chunks[p].parent; i >= 0 {
			copied, ok := w.copies[i]
			if !ok {
				return false
			}
			number, parent = copied, &w.kernels[copied].entry
		}
		e.setParent(p, number, parent)
	}
	w.copies[k.fromNumber] = len(w.kernels)
	e.sketch, k.copied = o.sketch, true
	return true
}

// A kernel of a series is encoded against the one before it, but the first of seriesStep against the first of those before, the first
// of seriesStep squared against the first of those before, and so on, so that none has many ancestors.
const seriesStep = 4

// seriesDepth is the number of ancestors that the first kernel of a series may have. Together with those in the series a kernel has
// fewer than limits.CorpusDepth.
const seriesDepth = limits.CorpusDepth / 2

// leastAlike is how many classes of the sketch of the first kernel of a series have to agree with those of its parent's series.
const leastAlike = 6

// chooseParents chooses the parent of each part of a kernel. Modules and extras have the nearest ancestor that has some.
func (w *Writer) chooseParents(ctx context.Context, k *Kernel) {
	e := &k.entry
	parent := w.parent(ctx, k)
	for p := range numParts {
		at := parent
		for at != nil && !at.entry.has(p) {
			if at.entry.chunks[partBTF].parent < 0 {
				at = nil
			} else {
				at = w.kernels[at.entry.chunks[partBTF].parent]
			}
		}
		if at == nil {
			e.setParent(p, -1, nil)
		} else {
			e.setParent(p, at.number, &at.entry)
		}
	}
}

// parent returns a kernel with the same BTF, or one of the series, or else the last one of the most similar series, or nil.
func (w *Writer) parent(ctx context.Context, k *Kernel) (parent *Kernel) {
	e := &k.entry
	if same := w.same[e.Sum]; same != nil && same.entry.chunks[partBTF].depth < seriesDepth {
		return same
	}
	if all := w.series[e.Key.Series()]; len(all) > 0 {
		step := 1
		for len(all)%(step*seriesStep) == 0 {
			step *= seriesStep
		}
		return all[len(all)-step]
	}
	if e.sketch = NewSketch(ctx, k.btf); e.sketch == nil {
		return nil
	}
	most := leastAlike - 1
	for _, s := range w.order {
		all := w.series[s]
		last := all[len(all)-1]
		if n := e.sketch.alike(all[0].entry.sketch); n > most && last.entry.chunks[partBTF].depth < seriesDepth {
			parent, most = last, n
		}
	}
	return parent
}

// append adds a kernel.
func (w *Writer) append(k *Kernel) {
	e := &k.entry
	k.number = len(w.kernels)
	key := e.Key.Series()
	w.at[e.Key.Canonical()] = k
	if w.same[e.Sum] == nil {
		w.same[e.Sum] = k
	}
	if w.series[key] == nil {
		w.order = append(w.order, key)
	}
	w.series[key] = append(w.series[key], k)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kernels = append(w.kernels, k)
}

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
