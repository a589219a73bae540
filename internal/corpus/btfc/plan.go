// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
)

// Plan gives a kernel its place behind all those that were planned before. It returns false if the file has the kernel already. If the
// file has one of the same key with other content, the error is ErrOther.
func (w *Writer) Plan(ctx context.Context, k *Kernel) (added bool, err error) {
	e := k.entry
	if i, ok := w.at[e.Key.Canonical()]; ok {
		o := w.file.entries[i]
		if o.Sum != e.Sum || o.Modules != e.Modules || o.ModulesSum != e.ModulesSum {
			return false, ErrOther
		}
		return false, nil
	}
	if w.Len() == limits.CorpusKernels {
		return false, &limits.Exceeded{Max: limits.CorpusKernels, What: "kernels"}
	}
	k.number = w.Len()
	w.chooseParents(ctx, k)
	w.append(e)
	return true, nil
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
	e, all := k.entry, w.file.entries
	parent := w.parent(ctx, k)
	for p := range numParts {
		if !e.has(p) {
			continue
		}
		at := parent
		for at >= 0 && !all[at].has(p) {
			at = all[at].Chunks[partBTF].Parent
		}
		e.setParent(p, at, all)
	}
}

// parent returns a kernel with the same BTF, or one of the series, or else the last one of the most similar series, or -1.
func (w *Writer) parent(ctx context.Context, k *Kernel) int {
	e, all := k.entry, w.file.entries
	if same, ok := w.same[e.Sum]; ok && all[same].Chunks[partBTF].depth < seriesDepth {
		return same
	}
	if s := w.series[e.Key.Series()]; s != nil {
		step := 1
		for len(s.kernels)%(step*seriesStep) == 0 {
			step *= seriesStep
		}
		return s.kernels[len(s.kernels)-step]
	}
	if e.Sketch = NewSketch(ctx, k.BTF); e.Sketch == nil {
		return -1
	}
	var best *series
	most := leastAlike
	for _, l := range w.likes {
		n := e.Sketch.alike(&l.sketch)
		if n < most {
			continue
		}
		i := slices.IndexFunc(l.series, func(s *series) bool { return all[s.last()].Chunks[partBTF].depth < seriesDepth })
		if i >= 0 && (best == nil || n > most || l.series[i].kernels[0] < best.kernels[0]) {
			best, most = l.series[i], n
		}
	}
	if best == nil {
		return -1
	}
	return best.last()
}

// series is the kernels of a series, by number.
type series struct{ kernels []int }

func (s *series) last() int { return s.kernels[len(s.kernels)-1] }

// likes is the series whose first kernels have the same sketch, in the order of these.
type likes struct {
	sketch Sketch
	series []*series
}

// append adds a kernel.
func (w *Writer) append(e *Entry) {
	i, key := w.Len(), e.Key.Series()
	w.at[e.Key.Canonical()] = i
	if _, ok := w.same[e.Sum]; !ok {
		w.same[e.Sum] = i
	}
	s := w.series[key]
	if s == nil {
		s = new(series)
		w.series[key] = s
		if e.Sketch != nil {
			w.like(*e.Sketch, s)
		}
	}
	s.kernels = append(s.kernels, i)
	w.file.add(e)
}

// like adds a series whose first kernel has a sketch.
func (w *Writer) like(sketch Sketch, s *series) {
	l := w.likeOf[sketch]
	if l == nil {
		l = &likes{sketch: sketch}
		w.likeOf[sketch], w.likes = l, append(w.likes, l)
	}
	l.series = append(l.series, s)
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

// alike returns how many classes agree.
func (s *Sketch) alike(o *Sketch) (n int) {
	for i := range s {
		if s[i] == o[i] {
			n++
		}
	}
	return n
}

// Order returns the numbers of the sketches in the best order to add their kernels: each is as much as possible like one before it or in
// the file. The first one of a new file is most like all others. Kernels without a sketch come last.
func (w *Writer) Order(sketches []*Sketch) (order []int) {
	var distinct []*Sketch
	var equal [][]int // numbers of the sketches equal to each of distinct
	at := make(map[Sketch]int)
	var without []int
	for i, s := range sketches {
		if s == nil {
			without = append(without, i)
			continue
		}
		n, ok := at[*s]
		if !ok {
			n = len(distinct)
			at[*s] = n
			distinct, equal = append(distinct, s), append(equal, nil)
		}
		equal[n] = append(equal[n], i)
	}
	nearest := make([]int, len(distinct)) // how much alike to those before, -1 for what is in order
	for i, s := range distinct {
		for _, l := range w.likes {
			nearest[i] = max(nearest[i], s.alike(&l.sketch))
		}
	}
	if len(w.file.entries) == 0 {
		first, most := 0, -1
		for i, s := range distinct {
			sum := 0
			for j, o := range distinct {
				sum += s.alike(o) * len(equal[j])
			}
			if sum > most {
				first, most = i, sum
			}
		}
		if len(distinct) > 0 {
			nearest[first] = len(Sketch{}) + 1
		}
	}
	for range distinct {
		next := -1
		for i, n := range nearest {
			if n >= 0 && (next < 0 || n > nearest[next]) {
				next = i
			}
		}
		order = append(order, equal[next]...)
		nearest[next] = -1
		for i, s := range distinct {
			if nearest[i] >= 0 {
				nearest[i] = max(nearest[i], s.alike(distinct[next]))
			}
		}
	}
	return append(order, without...)
}
