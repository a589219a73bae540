// SPDX-License-Identifier: Apache-2.0

package interp

import "github.com/btfgen/btfgen/internal/bpfobj"

// Guard is what keeps the verifier from an instruction.
type Guard struct {
	Branch bpfobj.Site // the last instruction that it reaches
	Fact   *Fact       // what decided that; nil where it is a constant of the code
}

// Guard says what keeps the verifier from an instruction that it does not
// reach: of the instructions that it does, one from which the fewest steps lead
// there. It is false where none does.
func (r *Result) Guard(at bpfobj.Site) (Guard, bool) {
	g := r.guardsOf(at.Fn)
	n, ok := g.number(at)
	if !ok || g.steps[n] == 0 {
		return Guard{}, false
	}
	branch := g.sites[g.origin[n]]
	return Guard{branch, r.decidedBy(branch)}, true
}

// guardsOf returns the guards of a function's instructions. Where it is entered they
// are its own, as the only way into it is its beginning.
func (r *Result) guardsOf(fn int) *guards {
	if r.Reached(bpfobj.Site{Fn: fn}) == Unreached {
		if r.guards == nil {
			r.guards = r.findGuards(r.pr.Funcs...)
		}
		return r.guards
	}
	g := r.local[fn]
	if g == nil {
		if r.local == nil {
			r.local = make(map[int]*guards)
		}
		g = r.findGuards(fn)
		r.local[fn] = g
	}
	return g
}

// guards is where a shortest way to each instruction begins. Instructions are
// numbered in the order of the program's functions.
type guards struct {
	first  map[int]int32 // number of the first instruction by function
	sites  []bpfobj.Site
	steps  []int32 // 0 for those that are reached, and those where no way leads
	origin []int32 // the last instruction on the way that is reached
	rank   []int32 // of the one before among those that lead there
}

func (g *guards) number(at bpfobj.Site) (int32, bool) {
	first, ok := g.first[at.Fn]
	n := first + int32(at.Insn)
	return n, ok && int(n) < len(g.sites) && g.sites[n] == at
}

// findGuards walks from all that is reached in some functions at once. Of the instructions that
// lead somewhere in equally many steps calls come first, and then the first.
func (r *Result) findGuards(funcs ...int) *guards {
	n := 0
	for _, fn := range funcs {
		n += len(r.o.Funcs[fn].Insns)
	}
	g := &guards{first: make(map[int]int32, len(funcs)), sites: make([]bpfobj.Site, 0, n)}
	for _, fn := range funcs {
		g.first[fn] = int32(len(g.sites))
		for i := range r.o.Funcs[fn].Insns {
			g.sites = append(g.sites, bpfobj.Site{Fn: fn, Insn: i})
		}
	}
	g.steps, g.origin, g.rank = make([]int32, n), make([]int32, n), make([]int32, n)
	var now, next []int32
	for i, at := range g.sites {
		if r.Reached(at) != Unreached {
			g.origin[i] = int32(i)
			now = append(now, int32(i))
		}
	}
	for steps := int32(1); len(now) > 0; steps++ {
		for _, from := range now {
			r.successors(g, from, func(to, rank int32) {
				switch {
				case g.steps[to] == 0 && r.Reached(g.sites[to]) == Unreached:
					g.steps[to] = steps
					next = append(next, to)
				case g.steps[to] != steps || g.rank[to] <= rank:
					return
				}
				g.origin[to], g.rank[to] = g.origin[from], rank
			})
		}
		now, next = next, now[:0]
	}
	return g
}

// successors calls f for the instructions that may be executed after one, with
// its rank among those that lead there.
func (r *Result) successors(g *guards, n int32, f func(to, rank int32)) {
	at := g.sites[n]
	code := r.o.Funcs[at.Fn].Insns
	in := &code[at.Insn]
	if first, ok := g.first[int(in.Ref.N)]; ok && in.Ref.Kind == bpfobj.RefFunc {
		f(first, n)
	}
	within := func(i int) {
		if i >= 0 && i < len(code) {
			f(n+int32(i-at.Insn), int32(len(g.sites))+n)
		}
	}
	if in.FallsThrough() {
		within(at.Insn + in.Slots())
	}
	if slots, ok := in.Jump(); ok {
		within(at.Insn + 1 + slots)
	}
}
