// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"math/bits"
	"slices"

	"github.com/cilium/ebpf/asm"
)

// address is what is known of a register or stack slot. Which of the fields counts depends on the kind.
type address struct {
	kind   addressKind
	arg    int32 // ofArg: the argument; ofWalk: the step
	helper int32 // ofResult: the helper that returned it
	inMap  int32 // ofMap, inValue, ofHeld: the map
	record int32 // isRecord: the CO-RE record; ofArg, ofResult, ofWalk: the record of an added value plus 1, 0 for none
	value  int64 // isNumber
	off    int64 // ofContext, ofArg, ofResult, ofWalk: bytes from the beginning; ofStack: from the top

	computed bool // see Access
	given    bool // see Access
	checked  bool // see Access
}

type addressKind uint8

const (
	ofNothing addressKind = iota
	ofContext
	ofArg
	ofResult
	ofWalk // loaded from a struct of the kernel
	ofStack
	ofMap
	ofRing   // memory of a ring buffer
	ofMemory // memory that a global function was given
	inValue  // an address in a value of a map
	ofHeld   // memory at a pointer in a value of a map
	ofSum    // an address and a number that is not a constant
	isNumber
	isRecord // the value of a CO-RE record
)

// plus returns a after a constant was added to it.
func (a address) plus(n int64) address {
	switch a.kind {
	case isNumber:
		a.value += n
	case ofSum:
	default:
		a.off += n
	}
	return a
}

// check notes that a pointer was compared with 0 and is not.
func (s *addresses) check(a address) {
	for r := range s.regs {
		s.regs[r].checked = s.regs[r].checked || s.regs[r].pointsLike(a)
	}
	for i := range s.stack {
		s.stack[i].checked = s.stack[i].checked || s.stack[i].pointsLike(a)
	}
}

// pointsLike reports whether both addresses come from the same argument or step.
func (a address) pointsLike(b address) bool { return a.kind == b.kind && a.arg == b.arg }

// checkable reports whether it matters whether the address was compared with 0.
func (a address) checkable() bool { return a.kind == ofArg || a.kind == ofWalk }

// same reports whether two addresses differ at most in whether they were compared with 0.
func (a address) same(b address) bool {
	b.checked = a.checked
	return a == b
}

// constant reports whether a is a number that is the same on each path, or that the loader writes.
func (a address) constant() bool { return a.kind == isNumber || a.kind == isRecord }

// typed reports whether the verifier knows the type of what is at an address of the kernel.
func (a address) typed() bool { return a.kind == ofArg || a.kind == ofResult || a.kind == ofWalk }

// adds reports whether b is the value of a record that can be added to a. At most one is followed.
func (a address) adds(b address) bool { return a.typed() && a.record == 0 && b.kind == isRecord }

// addresses is what is known before an instruction.
type addresses struct {
	regs    [10]address
	stack   []slot
	written written
}

// clone returns a copy.
func (s *addresses) clone() *addresses { return &addresses{s.regs, slices.Clone(s.stack), s.written} }

// written has the bytes of the stack that any path may have written, one bit each.
type written [stackSize / 64]uint64

// write notes that size bytes at an offset may have been written.
func (w *written) write(off, size int64) {
	for i := max(0, off+stackSize); i < min(stackSize, off+size+stackSize); i++ {
		w[i/64] |= 1 << (i % 64)
	}
}

// fresh returns the first of size bytes at an offset that no path can have written.
func (w *written) fresh(off, size int64) (first int64, ok bool) {
	for i := max(0, off+stackSize); i < min(stackSize, off+size+stackSize); i++ {
		if w[i/64]&(1<<(i%64)) == 0 {
			return i - stackSize, true
		}
	}
	return 0, false
}

// lowest returns the lowest offset that may have been written, 0 for none.
func (w *written) lowest() int64 {
	for i := range w {
		if w[i] != 0 {
			return int64(64*i+bits.TrailingZeros64(w[i])) - stackSize
		}
	}
	return 0
}

// stackSize is the size of a function's stack in bytes (MAX_BPF_STACK).
const stackSize = 512

// slot is 8 bytes of the stack.
type slot struct {
	at int64 // the offset
	address
}

// overlaps reports whether x shares bytes with size bytes at an offset.
func (x slot) overlaps(off, size int64) bool { return x.at < off+size && off < x.at+8 }

// slot returns what is known of the slot at an offset.
func (s *addresses) slot(off int64) address {
	for i := range s.stack {
		if s.stack[i].at == off {
			return s.stack[i].address
		}
	}
	return address{}
}

func (s *addresses) reg(r asm.Register) address {
	switch {
	case r < asm.RFP:
		return s.regs[r]
	case r == asm.RFP:
		return address{kind: ofStack}
	}
	return address{}
}

func (s *addresses) set(r asm.Register, a address) {
	if r < asm.RFP {
		s.regs[r] = a
	}
}
