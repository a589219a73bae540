// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// Summary is the result of exploring a function that is entered in one way. It includes functions that are called with pointers
// to the stack, and refers to the summaries of other callees. A finished summary is immutable and safe for use by many goroutines.
type Summary struct {
	funcs    []*covered // sorted by fn
	origins  []Origin   // origins other than records
	relevant Relevant   // input that matters, also to called functions
	exits    []exit
	uses     []use
	enters   []entered
	depth    int // number of frames, including its own
	steps    int // steps, without those in other summaries
	work     int
	odd      Odd // code that could not be followed
}

// Summaries keeps summaries for later explorations. It is safe for use by many goroutines.
type Summaries interface {
	// Find returns the summary that Add was given for the same entry and equal input. Values of records may differ if they are
	// not relevant to the function and its callees. It returns nil if there is none.
	Find(from Entry) *Summary
	Add(from Entry, sum *Summary)
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

// covered is the part of a summary in one function.
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

// use is the summary of a function that another one calls.
type use struct {
	summary *Summary
	level   Level
}

// entered is a function that is verified on its own, or called back.
type entered struct {
	fn    int
	level Level
}

// enter notes a function that is entered with unknown arguments.
func (x *explorer) enter(s *state, fn int) {
	sum, l := x.summary, s.level
	x.spend(len(sum.enters))
	for i := range sum.enters {
		if e := &sum.enters[i]; e.fn == fn {
			e.level = min(e.level, l)
			return
		}
	}
	sum.enters = append(sum.enters, entered{fn, l})
}

// call notes a call of a function below a number of frames.
func (sum *Summary) call(c *Summary, l Level, frames int) {
	sum.depth = max(sum.depth, frames+c.depth)
	for i := range sum.uses {
		if x := &sum.uses[i]; x.summary == c {
			x.level = min(x.level, l)
			return
		}
	}
	sum.uses = append(sum.uses, use{c, l})
}

// summarize finds the summary of a function below a number of frames, or explores it. It is whole unless a limit ends the exploration
// or calls nest too deeply.
func (p *program) summarize(from Entry, frames int) (sum *Summary, whole bool) {
	p.frames += frames
	defer func() { p.frames -= frames }()
	if sum = p.known[from]; sum == nil && p.in.Summaries != nil {
		sum = p.in.Summaries.Find(from)
	}
	if sum != nil {
		if p.frames+sum.depth > maxFrames || !p.charge(sum) {
			return sum, false
		}
		p.known[from] = sum
		return sum, true
	}
	x := p.explore(from)
	if x.whole {
		p.known[from], p.charged[x.summary] = x.summary, true
		if p.in.Summaries != nil {
			p.in.Summaries.Add(from, x.summary)
		}
	}
	return x.summary, x.whole
}

// charge counts the cost of a summary that was found, so that the limits do not depend on earlier explorations.
func (p *program) charge(sum *Summary) bool {
	if !p.charged[sum] {
		p.charged[sum] = true
		p.steps += sum.steps
		p.spend(sum.work)
		for _, c := range sum.uses {
			p.charge(c.summary)
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
