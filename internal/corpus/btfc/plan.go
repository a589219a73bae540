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

// chooseParents chooses the parent of each part of a kernel. Modules and extras have the nearest ancestor that has some. Symbols have none
// of another series: most of their names are in the kernel's own BTF.
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
		if p == partExtras && e.Symbols > 0 && at >= 0 && all[at].Key.Series() != e.Key.Series() && all[at].Sum != e.Sum {
			at = -1
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
	return w.likeliest(e)
}

// likeliest returns the last kernel of the series whose first kernel is most like e, or -1.
func (w *Writer) likeliest(e *Entry) int {
	all := w.file.entries
	var best *series
	most := leastAlike
	for at, n := range w.alike.to(e.Sketch) {
		if n < most {
			continue
		}
		l := w.likes[at]
		i := slices.IndexFunc(l, func(s *series) bool { return all[s.last()].Chunks[partBTF].depth < seriesDepth })
		if i >= 0 && (best == nil || n > most || l[i].kernels[0] < best.kernels[0]) {
			best, most = l[i], n
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
	i, ok := w.likeOf[sketch]
	if !ok {
		i = len(w.likes)
		w.likeOf[sketch], w.likes = i, append(w.likes, nil)
		w.alike.add(&sketch, i)
	}
	w.likes[i] = append(w.likes[i], s)
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

// sketches finds sketches that are like others. The zero value has none.
type sketches struct {
	of     map[class][]int // numbers of sketches; the keepAlike last ones
	counts map[int]int
}

// class is a class of a sketch with its hash.
type class struct {
	i    int
	hash uint32
}

// keepAlike is how many sketches with an equal class are looked at. More would make the time quadratic in the number of sketches.
const keepAlike = 64

// add adds a sketch with a number, which increases.
func (x *sketches) add(s *Sketch, number int) {
	if x.of == nil {
		x.of = make(map[class][]int)
	}
	for i, hash := range s {
		all := append(x.of[class{i, hash}], number)
		x.of[class{i, hash}] = all[max(len(all)-keepAlike, 0):]
	}
}

// to returns how many classes of sketches agree with those of s, by their numbers. The result is valid until the next call.
func (x *sketches) to(s *Sketch) map[int]int {
	if x.counts == nil {
		x.counts = make(map[int]int)
	}
	clear(x.counts)
	for i, hash := range s {
		for _, number := range x.of[class{i, hash}] {
			x.counts[number]++
		}
	}
	return x.counts
}
