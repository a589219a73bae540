// SPDX-License-Identifier: Apache-2.0

package interp

import "github.com/btfgen/btfgen/internal/bpfprog"

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

// Result says of every instruction of a program whether it can be reached.
// Where GaveUp or Odd is set, more can be than is known. It is for one
// goroutine at a time.
type Result struct {
	GaveUp bool   // at a limit, or when the context ended
	Work   int    // instructions executed, and values of states compared
	Odd    string // why something could not be followed

	o         *bpfprog.Object
	pr        *bpfprog.Program
	in        *Input
	reached   map[int][]Level        // by function, by slot
	decidedBy map[bpfprog.Site]int32 // where the constants of a branch come from, as the src of values
	facts     []Fact                 // but for those of records
	relevant  map[int]bool           // records
	moved     map[bpfprog.Site]Level // accesses to the context
	guards    *guards
}

// Reached says how sure it is that the verifier reaches an instruction.
func (r *Result) Reached(at bpfprog.Site) Level {
	if l := r.reached[at.Fn]; at.Insn < len(l) {
		return l[at.Insn]
	}
	return Unreached
}

// Moved says how sure it is that the verifier reaches an instruction with an address of the
// context to which something other than 0 was added. Unreached is also what is not known.
func (r *Result) Moved(at bpfprog.Site) Level { return r.moved[at] }

// Fact is where a constant comes from.
type Fact struct {
	Record int    // of CO-RE; -1 for others
	Name   string // of a variable or an extern
	V      uint64
}

// fact is what a value's src stands for, nil for 0.
func (r *Result) fact(src int32) *Fact {
	switch {
	case src > 0:
		v, _ := r.in.Record(int(src - 1))
		return &Fact{Record: int(src - 1), V: v}
	case src < 0:
		return &r.facts[-src-1]
	}
	return nil
}
