// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"

	"github.com/btfgen/btfgen/internal/limits"
)

// plan is a kernel's place. The places of kernels depend on the plans of those before them, and so on nothing that takes long to
// find out.
type plan struct {
	Entry          // of a kernel that was there; of others, what was known before they were made
	number int     // in the file
	depth  int     // how many it is encoded against
	cost   int64   // about how many bytes are to be unpacked for it
	job    *Kernel // nil for one that was there

	line   []*plan // what it is encoded against is the last of these that is not kept as bytes
	again  bool    // that has the same BTF
	copied bool    // the chunk is copied

	extrasCopied bool // that of its extras is
}

// entry is the entry of a kernel that has been made.
func (p *plan) entry() *Entry {
	if p.job != nil {
		return &p.job.entry
	}
	return &p.Entry
}

// made waits until the kernel has been made.
func (p *plan) made(ctx context.Context) (*Entry, error) {
	if p.job != nil {
		if err := wait(ctx, p.job.made); err != nil {
			return nil, err
		}
	}
	return p.entry(), nil
}

// Plan gives a kernel its place, behind all those that were planned before. It reports whether it needs one: see Add. It may wait for
// others to be made.
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
	if len(w.plans) == 0 && k.from != nil {
		w.source, w.copied, w.extrasOf = k.from, map[int]int{-1: -1}, map[int]int{-1: -1}
	}
	p := &plan{Entry: k.entry, job: k}
	if !w.copy(p) {
		w.chooseParent(ctx, p)
	}
	w.planExtras(p)
	k.plan, k.entry = p, p.Entry
	w.append(p)
	return true, nil
}

// copy plans a kernel whose chunk can be copied.
func (w *Writer) copy(p *plan) bool {
	k := p.job
	if k.from == nil || k.from != w.source {
		return false
	}
	o := &k.from.entries[k.number]
	if o.Sum != p.Sum || o.ModulesSum != p.ModulesSum {
		return false
	}
	parent, ok := w.copied[o.parent]
	if ok {
		w.copied[k.number] = len(w.plans)
		p.parent, p.head, p.sketch, p.copied = parent, o.head, o.sketch, true
		p.modulesFrom = -1
		if o.modulesFrom >= 0 {
			p.modulesFrom = w.copied[o.modulesFrom] // an ancestor
		}
	}
	return ok
}

// How a series is told: every kernel from the one before it, but the first of so many from the first of those before,
// so that none is encoded against many.
const seriesStep = 4

// seriesDepth is how many kernels a series may begin with being encoded against. No kernel is encoded against more than that and what a series has,
// which is less than limits.CorpusDepth.
const seriesDepth = limits.CorpusDepth / 2

// The first of a series is encoded against one that is alike and takes little to read.
const (
	leastAlike = 6       // how many classes of a sketch have to agree
	mostCost   = 6 << 20 // bytes to be unpacked, at most, if that is not less than for the kernel alone
	classCost  = 1 << 18 // so many are worth a class, of a large kernel a classPart of its own
	classPart  = 20
)

// chooseParent chooses the parent of a kernel: one with the same BTF, or one of its series, or else the last one of the series that is most like it,
// unless that takes long to read.
func (w *Writer) chooseParent(ctx context.Context, p *plan) {
	if same := w.same[p.Sum]; same != nil && same.depth < seriesDepth {
		p.line, p.parent, p.again = []*plan{same}, same.number, true
		return
	}
	if all := w.series[p.Key.Series()]; len(all) > 0 {
		step := 1
		for len(all)%(step*seriesStep) == 0 {
			step *= seriesStep
		}
		p.line = all[:len(all)-step+1]
		p.parent = p.line[len(p.line)-1].number
		return
	}
	s := NewSketch(ctx, p.job.btf)
	if s == nil {
		return
	}
	p.head, p.sketch = true, s
	most := 0
	class, limit := max(classCost, p.Size/classPart), max(mostCost, p.alone())
	for _, s := range w.order {
		all := w.series[s]
		head, last := all[0], all[len(all)-1]
		n := p.sketch.alike(head.sketch)
		if !head.head || n < leastAlike || last.depth >= seriesDepth || last.cost > limit {
			continue
		}
		if score := n - int(last.cost/class); p.line == nil || score > most {
			p.line, p.parent, most = all, last.number, score
		}
	}
}

// alone is about how many bytes are to be unpacked for a kernel that is encoded against none.
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
		case p.head:
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
