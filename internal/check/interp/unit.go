// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// Unit is the result of exploring a function that is entered in one way. It includes functions that are called with pointers
// to the stack, and refers to the units of the others. A finished unit is immutable and safe for use by many goroutines.
type Unit struct {
	funcs    []*covered // sorted by fn
	origins  []Origin   // origins other than records
	relevant Relevant   // input that matters, also to called units
	exits    []exit
	uses     []use
	enters   []entered
	depth    int // number of frames, including its own
	steps    int // steps, without those of other units
	work     int
	odd      Odd // code that could not be followed
}

// Units keeps units for later explorations. It is safe for use by many goroutines.
type Units interface {
	// Find returns the unit that Add was given for the same entry and equal input. Values of records may differ if they are
	// not relevant to the function and its callees. It returns nil if there is none.
	Find(from Entry) *Unit
	Add(from Entry, u *Unit)
}

// Entry is a function and what is known of its arguments. It is comparable.
type Entry struct {
	Fn   int
	args [5]value
}

// anyEntry is an entry with unknown arguments.
func anyEntry(fn int) Entry {
	return Entry{fn, [5]value{unknown, unknown, unknown, unknown, unknown}}
}

// covered is the part of a unit in one function.
type covered struct {
	fn      int
	levels  []Level          // one per slot
	decided map[int32]int32  // source of the constants that decide each branch, as value.src
	flaws   map[Flawed]Level // how sure each flaw of an instruction is
}

// exit is a way in which a function returns.
type exit struct {
	r0    value
	level Level
	insn  int32 // first instruction that returns so
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

// enter notes a function that is entered with unknown arguments.
func (x *explorer) enter(s *state, fn int) {
	u, l := x.u, s.level
	x.spend(len(u.enters))
	for i := range u.enters {
		if e := &u.enters[i]; e.fn == fn {
			e.level = min(e.level, l)
			return
		}
	}
	u.enters = append(u.enters, entered{fn, l})
}

// call notes a call of a unit below a number of frames.
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

// unit finds or explores a function below a number of frames. The unit is whole unless a limit ends the exploration or calls
// nest too deeply.
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

// charge counts the cost of a unit that was found, so that the limits do not depend on earlier explorations.
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

// arguments returns the entry of a call, false if the callee may access the caller's stack or origins.
func (x *explorer) arguments(s *state, fn int) (Entry, bool) {
	from, live := anyEntry(fn), x.liveAt(bpfobj.Site{Fn: fn}).regs
	for i := range from.args {
		r := asm.R1 + asm.Register(i)
		v := s.regs[r]
		switch {
		case v.isStack():
			return Entry{}, false
		case !live.Has(r):
		case v.src < 0:
			return Entry{}, false
		default:
			from.args[i] = v
		}
	}
	return from, true
}
