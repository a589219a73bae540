// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"slices"
	"sort"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// Guard is the branch that keeps the verifier from an instruction.
type Guard struct {
	Branch bpfobj.Site // the last instruction that it reaches
	Fact   *Fact       // the value that decides the branch; nil for a constant of the code
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
			r.guards = make(map[int]*guards)
		}
		g = r.findGuards(funcs)
		r.guards[key] = g
	}
	n, ok := g.first[at.Fn]
	if n += int32(at.Insn); !ok || int(n) >= len(g.origin) || g.site(n) != at || g.origin[n] == none || g.origin[n] == n {
		return Guard{}, false
	}
	branch := g.site(g.origin[n])
	return Guard{branch, r.decidedBy(branch)}, true
}

// guards are the guards in some functions. Instructions are numbered in the order of the functions.
type guards struct {
	funcs  []int
	first  map[int]int32 // number of the first instruction by function
	origin []int32       // the instruction that guards it; itself if it is reached
}

// site returns instruction n.
func (g *guards) site(n int32) bpfobj.Site {
	i := sort.Search(len(g.funcs), func(i int) bool { return g.first[g.funcs[i]] > n }) - 1
	return bpfobj.Site{Fn: g.funcs[i], Insn: int(n - g.first[g.funcs[i]])}
}

// none is the origin of an instruction without a guard.
const none = -1

// findGuards searches from all reached instructions of some functions at once. Among instructions with equally many steps,
// calls are preferred, then the first.
func (r *Result) findGuards(funcs []int) *guards {
	g := &guards{funcs: funcs, first: make(map[int]int32, len(funcs))}
	n := 0
	for _, fn := range funcs {
		g.first[fn] = int32(n)
		n += len(r.o.Funcs[fn].Insns)
	}
	g.origin = slices.Repeat([]int32{none}, n)
	var now []int32
	for _, fn := range funcs {
		for i := range r.o.Funcs[fn].Insns {
			if n := g.first[fn] + int32(i); r.Reached(bpfobj.Site{Fn: fn, Insn: i}) != Unreached {
				g.origin[n] = n
				now = append(now, n)
			}
		}
	}
	for len(now) > 0 {
		var next []int32
		step := func(from, to int32) {
			if g.origin[to] == none {
				g.origin[to] = g.origin[from]
				next = append(next, to)
			}
		}
		for _, from := range now {
			in := r.insn(g.site(from))
			if first, ok := g.first[in.Ref.N()]; ok && in.Ref.Kind() == bpfobj.RefFunc {
				step(from, first)
			}
		}
		for _, from := range now {
			at := g.site(from)
			in, last := r.insn(at), len(r.o.Funcs[at.Fn].Insns)-1
			if in.FallsThrough() && at.Insn+in.Slots() <= last {
				step(from, from+int32(in.Slots()))
			}
			if slots, ok := in.Jump(); ok && at.Insn+1+slots >= 0 && at.Insn+1+slots <= last {
				step(from, from+1+int32(slots))
			}
		}
		slices.Sort(next)
		now = next
	}
	return g
}

func (r *Result) insn(at bpfobj.Site) *bpfobj.Insn { return &r.o.Funcs[at.Fn].Insns[at.Insn] }
