// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"cmp"
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// Guard is the branch that keeps the verifier from an instruction.
type Guard struct {
	Branch bpfobj.Site // last instruction that the verifier reaches
	Origin *Origin     // value that decides the branch; nil for a constant in the code
}

// Guard returns the guard of an instruction that is not reached: the reached instruction with the fewest steps to it. It
// reports false if there is none.
func (r *Result) Guard(at bpfobj.Site) (Guard, bool) {
	key, funcs := at.Fn, []int{at.Fn}
	if r.Reached(bpfobj.Site{Fn: at.Fn}) == Unreached { // the guard is in another function
		key, funcs = -1, r.pr.Funcs
	}
	g := r.guards[key]
	if g == nil {
		if r.guards == nil {
			r.guards = make(map[int]guards)
		}
		g = r.findGuards(funcs)
		r.guards[key] = g
	}
	branch := g.of(at)
	if branch == nil || *branch == nil || **branch == at {
		return Guard{}, false
	}
	return Guard{**branch, r.decidedBy(**branch)}, true
}

// guards are the instructions that guard those of some functions, by slot; of a reached instruction itself, nil for none.
type guards map[int][]*bpfobj.Site

// of returns the entry of an instruction, nil for one outside the functions.
func (g guards) of(at bpfobj.Site) **bpfobj.Site {
	if l := g[at.Fn]; at.Insn >= 0 && at.Insn < len(l) {
		return &l[at.Insn]
	}
	return nil
}

// findGuards searches from all reached instructions of some functions at once. Among instructions with equally many steps,
// calls are preferred, then the first.
func (r *Result) findGuards(funcs []int) guards {
	g := make(guards)
	var now []bpfobj.Site
	for _, fn := range funcs {
		g[fn] = make([]*bpfobj.Site, len(r.object.Funcs[fn].Insns))
		for i := range g[fn] {
			if at := (bpfobj.Site{Fn: fn, Insn: i}); r.Reached(at) != Unreached {
				g[fn][i] = &at
				now = append(now, at)
			}
		}
	}
	for len(now) > 0 {
		var next []bpfobj.Site
		step := func(from, to bpfobj.Site) {
			if entry := g.of(to); entry != nil && *entry == nil {
				*entry = *g.of(from)
				next = append(next, to)
			}
		}
		for _, from := range now {
			if in := r.insn(from); in.Ref.Kind() == bpfobj.RefFunc {
				step(from, bpfobj.Site{Fn: in.Ref.N()})
			}
		}
		for _, from := range now {
			in := r.insn(from)
			if in.FallsThrough() {
				step(from, bpfobj.Site{Fn: from.Fn, Insn: from.Insn + in.Slots()})
			}
			if slots, ok := in.Jump(); ok {
				step(from, bpfobj.Site{Fn: from.Fn, Insn: from.Insn + 1 + slots})
			}
		}
		slices.SortFunc(next, func(a, b bpfobj.Site) int {
			return cmp.Or(cmp.Compare(a.Fn, b.Fn), cmp.Compare(a.Insn, b.Insn))
		})
		now = next
	}
	return g
}

func (r *Result) insn(at bpfobj.Site) *bpfobj.Insn { return &r.object.Funcs[at.Fn].Insns[at.Insn] }
