// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"

	"github.com/btfgen/btfgen/internal/limits"
)

// plan is the place of a kernel in the file. It depends only on the plans of those before it.
type plan struct {
	Entry          // of a kernel of the old file; of others, what was known before they were made
	number int     // in the file
	depth  int     // number of ancestors
	cost   int64   // about how many bytes have to be unpacked to read it
	job    *Kernel // nil for a kernel of the old file
	copied bool    // its chunks are copied
}

// entry returns the entry of a kernel that has been made.
func (p *plan) entry() *Entry {
	if p.job != nil {
		return &p.job.entry
	}
	return &p.Entry
}

// Plan gives a kernel its place behind all those that were planned before. It returns false if the file has the kernel already. If the
// file has one of the same key with other content, the error is ErrOther. It may wait for others to be made.
func (w *Writer) Plan(ctx context.Context, k *Kernel) (added bool, err error) {
	if p, ok := w.at[k.entry.Key.Canonical()]; ok {
		if p.Sum != k.entry.Sum || p.Modules != k.entry.Modules || p.ModulesSum != k.entry.ModulesSum {
			return false, ErrOther
		}
		return false, nil
	}
	if len(w.plans) == limits.CorpusKernels {
		return false, &limits.Exceeded{Max: limits.CorpusKernels, What: "kernels"}
	}
	select {
	case w.room <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if len(w.plans) == 0 {
		w.source = k.from
	}
	p := &plan{Entry: k.entry, job: k}
	if !w.copy(p) {
		w.chooseParent(ctx, p)
	}
	k.plan, k.entry = p, p.Entry
	w.append(p)
	return true, nil
}

// copy plans a kernel whose chunks can be copied: the source has all of it, and its parent is a copy.
func (w *Writer) copy(p *plan) bool {
	k := p.job
	if k.from == nil || k.from != w.source {
		return false
	}
	o := &k.from.entries[k.number]
	if o.Sum != p.Sum || o.ModulesSum != p.ModulesSum || o.Config != p.Config || o.Symbols != p.Symbols {
		return false
	}
	if o.parent >= 0 {
		parent, ok := w.copies[o.parent]
		if !ok {
			return false
		}
		p.parent = parent
	}
	w.copies[k.number] = len(w.plans)
	p.sketch, p.copied = o.sketch, true
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
func (w *Writer) chooseParent(ctx context.Context, p *plan) {
	if same := w.same[p.Sum]; same != nil && same.depth < seriesDepth {
		p.parent = same.number
		return
	}
	if all := w.series[p.Key.Series()]; len(all) > 0 {
		step := 1
		for len(all)%(step*seriesStep) == 0 {
			step *= seriesStep
		}
		p.parent = all[len(all)-step].number
		return
	}
	if p.sketch = NewSketch(ctx, p.job.btf); p.sketch == nil {
		return
	}
	most := 0
	class, limit := max(classCost, p.Size/classPart), max(mostCost, p.alone())
	for _, s := range w.order {
		all := w.series[s]
		head, last := all[0], all[len(all)-1]
		n := p.sketch.alike(head.sketch)
		if head.sketch == nil || n < leastAlike || last.depth >= seriesDepth || last.cost > limit {
			continue
		}
		if score := n - int(last.cost/class); p.parent < 0 || score > most {
			p.parent, most = last.number, score
		}
	}
}

// alone is about how many bytes have to be unpacked for a kernel without a parent.
func (p *plan) alone() int64 { return p.Size / 2 }

// append adds a plan.
func (w *Writer) append(p *plan) {
	p.number = len(w.plans)
	key := p.Key.Series()
	if p.cost = p.alone(); p.parent >= 0 {
		from := w.plans[p.parent]
		p.depth = from.depth + 1
		switch {
		case from.Sum == p.Sum:
			p.cost = 0
		case p.sketch != nil:
			classes := int64(len(p.sketch))
			others := classes - int64(p.sketch.alike(w.series[from.Key.Series()][0].sketch))
			p.cost = p.cost * others * others / (classes * classes)
		default:
			p.cost /= 64
		}
		p.cost += from.cost
	}
	w.at[p.Key.Canonical()] = p
	if w.same[p.Sum] == nil {
		w.same[p.Sum] = p
	}
	if w.series[key] == nil {
		w.order = append(w.order, key)
	}
	w.series[key] = append(w.series[key], p)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plans = append(w.plans, p)
}
