// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"

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
		w.chooseParent(ctx, k)
	}
	w.append(k)
	return true, nil
}

// copy plans a kernel whose chunks can be copied: the source has all of it, and its parent is a copy.
func (w *Writer) copy(k *Kernel) bool {
	if k.from == nil || k.from != w.source {
		return false
	}
	e, o := &k.entry, &k.from.entries[k.fromNumber]
	if o.Sum != e.Sum || o.ModulesSum != e.ModulesSum || o.Config != e.Config || o.Symbols != e.Symbols {
		return false
	}
	if o.parent >= 0 {
		parent, ok := w.copies[o.parent]
		if !ok {
			return false
		}
		e.parent = parent
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

// The first kernel of a series is encoded against a similar kernel that takes little to read.
const (
	leastAlike = 6       // classes of a sketch that have to agree
	mostCost   = 6 << 20 // bytes to be unpacked, if that is not less than for the kernel alone
	classCost  = 1 << 18 // bytes that are worth a class; of a large kernel a classPart of its own
	classPart  = 20
)

// chooseParent chooses the parent of a kernel: one with the same BTF, or one of its series, or else the last one of the most similar
// series, unless that takes long to read.
func (w *Writer) chooseParent(ctx context.Context, k *Kernel) {
	e := &k.entry
	if same := w.same[e.Sum]; same != nil && same.depth < seriesDepth {
		e.parent = same.number
		return
	}
	if all := w.series[e.Key.Series()]; len(all) > 0 {
		step := 1
		for len(all)%(step*seriesStep) == 0 {
			step *= seriesStep
		}
		e.parent = all[len(all)-step].number
		return
	}
	if e.sketch = NewSketch(ctx, k.btf); e.sketch == nil {
		return
	}
	most := 0
	class, limit := max(classCost, e.Size/classPart), max(mostCost, e.alone())
	for _, s := range w.order {
		all := w.series[s]
		head, last := all[0], all[len(all)-1]
		n := e.sketch.alike(head.entry.sketch)
		if head.entry.sketch == nil || n < leastAlike || last.depth >= seriesDepth || last.cost > limit {
			continue
		}
		if score := n - int(last.cost/class); e.parent < 0 || score > most {
			e.parent, most = last.number, score
		}
	}
}

// alone is about how many bytes have to be unpacked for a kernel without a parent.
func (e *Entry) alone() int64 { return e.Size / 2 }

// append adds a kernel.
func (w *Writer) append(k *Kernel) {
	e := &k.entry
	k.number = len(w.kernels)
	key := e.Key.Series()
	if k.cost = e.alone(); e.parent >= 0 {
		from := w.kernels[e.parent]
		k.depth = from.depth + 1
		switch {
		case from.entry.Sum == e.Sum:
			k.cost = 0
		case e.sketch != nil:
			classes := int64(len(e.sketch))
			others := classes - int64(e.sketch.alike(w.series[from.entry.Key.Series()][0].entry.sketch))
			k.cost = k.cost * others * others / (classes * classes)
		default:
			k.cost /= 64
		}
		k.cost += from.cost
	}
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
