// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"cmp"
	"math"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// Level is how sure it is that the verifier reaches an instruction. A greater level is less sure, except Unreached.
type Level uint8

// The levels.
const (
	Unreached Level = iota
	Certain         // reached on every load
	Depends         // reached with some settings of the loader or kernel configurations
	Imprecise       // perhaps reached: paths were merged to bound the work
)

// surer returns the surer of two levels.
func surer(a, b Level) Level {
	if a == Unreached || b != Unreached && b < a {
		return b
	}
	return a
}

// below is l in a function that is reached with a level.
func below(l, level Level) Level {
	if l == Unreached {
		return l
	}
	return max(l, level)
}

// Odd is what an exploration cannot follow.
type Odd uint8

// What cannot be followed.
const (
	NothingOdd     Odd = iota
	LeavesFunction     // execution leaves a function
	UnnamedAddress     // the address of a function without a symbol
	UnnamedCall        // a call of a function without a symbol
	CallsNest          // calls that nest too deeply
)

// Result is which instructions of a program can be reached. If GaveUp or Odd is set, more instructions may be reachable. It is
// for one goroutine at a time.
type Result struct {
	GaveUp bool // the exploration ended at a limit or with the context
	Work   int  // instructions executed, and values of states compared
	Odd    Odd  // code that could not be followed

	object   *bpfobj.Code
	pr       *bpfobj.Program
	in       *Input
	parts    []use
	at       map[*Summary]int // index of each summary in parts
	of       map[int][]part   // parts of summaries, keyed by function
	levels   map[int][]Level  // levels of each function's slots
	relevant []Relevant
	guards   map[int]guards // keyed by function; -1 for all functions
}

// part is the part of a summary in a function.
type part struct {
	n int // index in Result.parts
	*covered
}

// add adds a summary, with those of called functions, to the result. It calls enter for other functions that are
// entered.
func (r *Result) add(sum *Summary, l Level, enter func(entered)) {
	i, ok := r.at[sum]
	switch {
	case !ok:
		r.at[sum] = len(r.parts)
		for _, c := range sum.funcs {
			r.of[c.fn] = append(r.of[c.fn], part{len(r.parts), c})
		}
		r.parts = append(r.parts, use{sum, l})
		r.Odd = cmp.Or(r.Odd, sum.odd)
	case r.parts[i].level <= l:
		return
	default:
		r.parts[i].level = l
	}
	for _, c := range sum.uses {
		r.add(c.summary, max(l, c.level), enter)
	}
	for _, e := range sum.enters {
		enter(entered{e.fn, max(l, e.level)})
	}
}

// Reached returns how sure it is that the verifier reaches an instruction.
func (r *Result) Reached(at bpfobj.Site) Level {
	if l := r.reached(at.Fn); at.Insn < len(l) {
		return l[at.Insn]
	}
	return Unreached
}

// reached returns the levels of a function, by slot; nil if it is not entered.
func (r *Result) reached(fn int) []Level {
	l, ok := r.levels[fn]
	if ok {
		return l
	}
	for _, p := range r.of[fn] {
		if l == nil {
			l = make([]Level, len(p.levels))
		}
		for i, m := range p.levels {
			l[i] = surer(l[i], below(m, r.parts[p.n].level))
		}
	}
	if r.levels == nil {
		r.levels = make(map[int][]Level)
	}
	r.levels[fn] = l
	return l
}

// With returns how sure it is that an instruction is executed with a flaw. Unreached means unknown, too.
func (r *Result) With(at bpfobj.Site, f Flaw) (l Level) {
	if f == NoFlaw {
		return r.Reached(at)
	}
	for _, p := range r.of[at.Fn] {
		l = surer(l, below(p.flaws[Flawed{int32(at.Insn), f}], r.parts[p.n].level))
	}
	return l
}

// Return is a way in which a program ends.
type Return struct {
	At       bpfobj.Site
	Min, Max uint64 // bounds of the returned number; 0 and all ones if unknown
	Level    Level
}

// Returns returns the ways in which the program ends. If GaveUp or Odd is set, there may be more.
func (r *Result) Returns() (l []Return) {
	if len(r.parts) == 0 {
		return nil
	}
	main := &r.parts[0]
	for _, e := range main.summary.exits {
		at := bpfobj.Site{Fn: r.pr.Fn, Insn: int(e.insn)}
		x := Return{At: at, Max: math.MaxUint64, Level: max(main.level, e.level)}
		if e.r0.kind == scalar {
			x.Min, x.Max = e.r0.bits, e.r0.max()
		}
		l = append(l, x)
	}
	return l
}

// Origin is where a constant comes from, with its value.
type Origin struct {
	Record int    // CO-RE record; -1 for other sources
	Name   string // name of the variable or extern
	V      uint64
}

// decidedBy returns the source of the constants that decide a branch, nil if they are the code's.
func (r *Result) decidedBy(at bpfobj.Site) *Origin {
	for _, p := range r.of[at.Fn] {
		switch src := p.decided[int32(at.Insn)]; {
		case src > 0:
			v, _ := r.in.Record(int(src - 1))
			return &Origin{Record: int(src - 1), V: v}
		case src < 0:
			return &r.parts[p.n].summary.origins[-src-1]
		}
	}
	return nil
}
