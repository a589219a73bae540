// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// Level says how sure it is that the verifier reaches an instruction. Greater
// is less, but for the zero value.
type Level uint8

// The levels.
const (
	Unreached Level = iota
	Certain         // on every load
	Depends         // with some settings of the loader, some kernels' configuration
	Imprecise       // perhaps: paths were merged to bound the work
)

// surer is what is surer of two.
func surer(a, b Level) Level {
	if a == Unreached || b != Unreached && b < a {
		return b
	}
	return a
}

// below is l in a unit that is reached as surely as level says.
func below(l, level Level) Level {
	if l == Unreached {
		return l
	}
	return max(l, level)
}

// Result says of every instruction of a program whether it can be reached.
// Where GaveUp or Odd is set, more can be than is known. It is for one
// goroutine at a time.
type Result struct {
	GaveUp bool   // at a limit, or when the context ended
	Work   int    // instructions executed, and values of states compared
	Odd    string // why something could not be followed

	o        *bpfobj.Object
	pr       *bpfobj.Program
	in       *Input
	parts    []use
	at       map[*Unit]int   // of parts
	of       map[int][]int   // parts by function
	levels   map[int][]Level // by function, by slot
	relevant []Relevant
	local    map[int]*guards // by function
	guards   *guards         // of all functions
}

// add makes a unit, and those that it calls, part of the result, and calls enter
// for what else is entered.
func (r *Result) add(u *Unit, l Level, enter func(entered)) {
	i, ok := r.at[u]
	switch {
	case !ok:
		r.at[u] = len(r.parts)
		for k := range u.funcs {
			fn := u.funcs[k].fn
			r.of[fn] = append(r.of[fn], len(r.parts))
		}
		r.parts = append(r.parts, use{u, l})
		r.Odd = cmp.Or(r.Odd, u.odd)
	case r.parts[i].level <= l:
		return
	default:
		r.parts[i].level = l
	}
	for _, c := range u.uses {
		r.add(c.u, max(l, c.level), enter)
	}
	for _, e := range u.enters {
		enter(entered{e.fn, max(l, e.level)})
	}
}

// eachPart calls f for what became of a function in each unit that has it.
func (r *Result) eachPart(fn int, f func(p *use, c *covered) (more bool)) {
	for _, i := range r.of[fn] {
		u := r.parts[i].u
		k, _ := slices.BinarySearchFunc(u.funcs, fn, func(c covered, fn int) int { return cmp.Compare(c.fn, fn) })
		if !f(&r.parts[i], &u.funcs[k]) {
			return
		}
	}
}

// Outcome identifies all that is known of a function, whichever program has it: of
// what is reached there, and by what it is decided. It is "" where nothing is
// reached.
func (r *Result) Outcome(fn int) string {
	var b []byte
	r.eachPart(fn, func(p *use, _ *covered) bool {
		b = append(binary.AppendUvarint(b, p.u.id), byte(p.level))
		return true
	})
	return string(b)
}

// Reached says how sure it is that the verifier reaches an instruction.
func (r *Result) Reached(at bpfobj.Site) Level {
	if l := r.reached(at.Fn); at.Insn < len(l) {
		return l[at.Insn]
	}
	return Unreached
}

// reached returns the levels of a function, by slot; nil where it is not entered.
func (r *Result) reached(fn int) []Level {
	l, ok := r.levels[fn]
	if ok {
		return l
	}
	r.eachPart(fn, func(p *use, c *covered) bool {
		if l == nil {
			l = make([]Level, len(c.levels))
		}
		for i, m := range c.levels {
			l[i] = surer(l[i], below(m, p.level))
		}
		return true
	})
	if r.levels == nil {
		r.levels = make(map[int][]Level)
	}
	r.levels[fn] = l
	return l
}

// Moved says how sure it is that the verifier reaches an instruction with an address of the
// context to which something other than 0 was added. Unreached is also what is not known.
func (r *Result) Moved(at bpfobj.Site) (l Level) {
	r.eachPart(at.Fn, func(p *use, c *covered) bool {
		for _, a := range c.accesses {
			if int(a.insn) == at.Insn {
				l = surer(l, below(a.moved, p.level))
			}
		}
		return true
	})
	return l
}

// Far returns the accesses of memory at an offset without a bound, and how sure it is that the verifier reaches them. Where
// GaveUp or Odd is set, there can be more.
func (r *Result) Far() map[bpfobj.Site]Level {
	all := make(map[bpfobj.Site]Level)
	for i := range r.parts {
		p := &r.parts[i]
		for _, c := range p.u.funcs {
			for _, a := range c.accesses {
				at := bpfobj.Site{Fn: c.fn, Insn: int(a.insn)}
				if l := surer(all[at], below(a.far, p.level)); l != Unreached {
					all[at] = l
				}
			}
		}
	}
	return all
}

// Return is a way in which a program ends.
type Return struct {
	At       bpfobj.Site
	Min, Max uint64 // bounds of what it returns
	Level    Level
}

// Returns says what the program returns. Where GaveUp or Odd is set, there can be more.
func (r *Result) Returns() (l []Return) {
	if len(r.parts) == 0 {
		return nil
	}
	main := &r.parts[0]
	for _, e := range main.u.exits {
		x := Return{At: bpfobj.Site{Fn: r.pr.Fn, Insn: int(e.insn)}, Max: math.MaxUint64, Level: max(main.level, e.level)}
		if e.r0.kind == scalar {
			x.Min, x.Max = e.r0.min(), e.r0.max()
		}
		l = append(l, x)
	}
	return l
}

// Fact is where a constant comes from.
type Fact struct {
	Record int    // of CO-RE; -1 for others
	Name   string // of a variable or an extern
	V      uint64
}

// decidedBy returns where the constants come from that decide a branch, nil where
// they are the code's.
func (r *Result) decidedBy(at bpfobj.Site) (f *Fact) {
	r.eachPart(at.Fn, func(p *use, c *covered) bool {
		i, ok := slices.BinarySearchFunc(c.decided, int32(at.Insn), func(d decision, insn int32) int { return cmp.Compare(d.insn, insn) })
		if !ok {
			return true
		}
		if src := c.decided[i].src; src > 0 {
			v, _ := r.in.Record(int(src - 1))
			f = &Fact{Record: int(src - 1), V: v}
		} else {
			f = &p.u.facts[-src-1]
		}
		return false
	})
	return f
}
