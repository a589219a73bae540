// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"sync/atomic"

	"github.com/cilium/ebpf/asm"
)

// Unit is what a function comes to when it is entered in one way. What it calls
// with pointers to the stack is a part of it, other functions are units of their
// own, which it refers to. It does not change any more, and is safe for use by
// many goroutines.
type Unit struct {
	id       uint64
	funcs    []covered
	facts    []Fact   // but for those of records
	relevant Relevant // to the units that it calls, too
	exits    []exit
	uses     []use
	enters   []entered
	depth    int // frames, its own counted
	steps    int // without those of other units
	work     int
	odd      string // why something could not be followed
}

// Units keeps units for explorations to come. It is safe for use by many
// goroutines.
type Units interface {
	// Find returns what Add was given for the same entry, where what the function
	// and all that it calls depend on is the same: the input, but for the values
	// of records that are not relevant. It returns nil where there is nothing.
	Find(from Entry) *Unit
	Add(from Entry, u *Unit)
}

// Entry is a way into a function: what is known of its arguments. It is
// comparable.
type Entry struct {
	Fn   int
	args [5]value
}

// anyEntry is an entry with arguments of which nothing is known.
func anyEntry(fn int) Entry {
	e := Entry{Fn: fn}
	for i := range e.args {
		e.args[i] = unknown
	}
	return e
}

// covered is what became of one function in a unit.
type covered struct {
	fn       int
	levels   []Level // by slot
	decided  []decision
	accesses []access
}

// decision is a branch, and where the constants come from that decide it, as the
// src of values. Those of the code are left out.
type decision struct{ insn, src int32 }

// access is one to the context where that is not as it was given, or to memory at an offset without a bound.
type access struct {
	insn       int32
	moved, far Level
}

// exit is a way in which a function returns.
type exit struct {
	r0    value
	level Level
	insn  int32 // the first that was found to return so
}

// use is a unit that another one calls.
type use struct {
	u     *Unit
	level Level
}

// entered is a function that is verified on its own, or called back.
type entered struct {
	fn    int
	level Level
}

var units atomic.Uint64

// enter notes a function that is entered with arguments of which nothing is known.
func (x *explorer) enter(fn int, l Level) {
	u := x.u
	x.spend(len(u.enters))
	for i := range u.enters {
		if e := &u.enters[i]; e.fn == fn {
			e.level = min(e.level, l)
			return
		}
	}
	u.enters = append(u.enters, entered{fn, l})
}

// call notes that a unit is called where so many frames are.
func (u *Unit) call(c *Unit, l Level, frames int) {
	u.depth = max(u.depth, frames+c.depth)
	for i := range u.uses {
		if x := &u.uses[i]; x.u == c {
			x.level = min(x.level, l)
			return
		}
	}
	u.uses = append(u.uses, use{c, l})
}

// unit explores a function, unless that has been done. It is whole unless a limit
// ends that, or calls nest too deeply; frames are there already.
func (p *program) unit(from Entry, frames int) (u *Unit, whole bool) {
	p.frames += frames
	defer func() { p.frames -= frames }()
	if u = p.known[from]; u == nil && p.in.Units != nil {
		u = p.in.Units.Find(from)
	}
	if u != nil {
		if p.frames+u.depth > maxFrames || !p.charge(u) {
			return u, false
		}
		p.known[from] = u
		return u, true
	}
	x := p.explore(from)
	if x.whole {
		p.known[from], p.charged[x.u] = x.u, true
		if p.in.Units != nil {
			p.in.Units.Add(from, x.u)
		}
	}
	return x.u, x.whole
}

// charge counts what a unit has cost, as if it had not been found: where a program
// gives up must not depend on what came before it.
func (p *program) charge(u *Unit) bool {
	if !p.charged[u] {
		p.charged[u] = true
		p.steps += u.steps
		p.spend(u.work)
		for _, c := range u.uses {
			p.charge(c.u)
		}
	}
	return p.within()
}

// arguments returns how a function is entered by a call, and false where it may
// get at the caller's stack, or at facts of the caller's unit.
func (x *explorer) arguments(s *state, fn int) (Entry, bool) {
	from, f := anyEntry(fn), &x.o.Funcs[fn]
	for i := range from.args {
		r := asm.R1 + asm.Register(i)
		v := s.regs[r]
		switch {
		case v.isStack():
			return Entry{}, false
		case f.Ignores(r):
		case v.src < 0:
			return Entry{}, false
		default:
			from.args[i] = v
		}
	}
	return from, true
}
