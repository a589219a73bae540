// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// gaps are what some verifiers certainly do not know of a number, although comparisons show it. In
//
//	call bpf_get_prandom_u32
//	if w0 > 64 goto out
//	w4 = w0
//	if r4 == 0 goto out
//	call bpf_skb_load_bytes
//
// verifiers without Halves keep no bound of w0 at the first branch, as the upper half of r0 is unknown. So the greatest r4 has all bits
// of the lower half. For verifiers without Unequal the least r4 is still 0 after the second branch.
type gaps uint8

const (
	noUpper   gaps = 1 << iota // the bits alone give the upper bound
	noLower                    // the bits alone give the lower bound
	half                       // noUpper, although the lower half was compared
	notZero                    // noLower, although the number was compared with 0
	open                       // not a constant: bits and bounds leave several numbers
	unbounded                  // never bounded by a comparison: only the bits limit it
	isCopied                   // another register may have the same number, so verifiers may learn about both at once

	allGaps = noUpper | noLower | half | notZero | open | unbounded
)

func (g gaps) has(o gaps) bool { return g&o == o }

// upperUnknown reports whether all bits of the upper half are unknown.
func (a value) upperUnknown() bool { return a.mask>>32 == 1<<32-1 }

// gapsAfter returns a.gaps after a comparison with n holds.
func (a value) gapsAfter(op asm.JumpOp, n uint64, is32 bool) gaps {
	g, wide := a.gaps, !is32 && op != asm.JNE || !a.upperUnknown()
	if wide { // updates of 5.4 know more bits after a comparison of the lower half, and derive a bound from them
		g &^= noUpper | half
	}
	switch op {
	case asm.JNE:
		if g.has(noLower) && n == 0 && a.bits == 0 {
			g |= notZero
		}
		return g
	case asm.JGT, asm.JGE:
		return g &^ (noLower | notZero | open | unbounded)
	case asm.JLT, asm.JLE:
		if g.has(noUpper) {
			g |= half
		}
		if n == 0 || n == 1 && op == asm.JLT { // only 0 remains
			g &^= noLower | notZero
		}
		if op == asm.JLT {
			n = max(n, 1) - 1
		}
		if g &^= unbounded; n < a.mask&-a.mask { // the lowest unknown bit is 0
			g &^= open
		}
		return g
	}
	return 0
}

// mayBeZero reports whether verifiers certainly do not decide a comparison of a with 0: the least a is 0, and the greatest is not.
func (a value) mayBeZero(op asm.JumpOp, b value) bool {
	return (op == asm.JEq || op == asm.JNE) && a.gaps.has(noLower) && a.bits == 0 && b == constant(0)
}

// number returns a number that verifiers know nothing about.
func (x *explorer) number() value {
	v := unknown
	if x.code.gaps.has(noUpper) && !x.knows(Halves) {
		v.gaps |= noUpper
	}
	if x.code.gaps.has(noLower) && !x.knows(Unequal) {
		v.gaps |= noLower | open | unbounded
	}
	return v
}

// copied notes that a move has made two registers equal.
func (s *state) copied(in *bpfobj.Insn) {
	for _, r := range []asm.Register{in.Dst, in.Src} {
		if v := s.reg(r); v.gaps != 0 {
			v.gaps |= isCopied
			s.write(r, v)
		}
	}
}

// learn replaces the value of a register by one with fewer gaps. Copies may lose the same.
func (s *state) learn(r asm.Register, v value) {
	old := s.reg(r).gaps
	if s.write(r, v); old.has(isCopied) {
		s.closeGaps(old &^ v.gaps)
	}
}

// closeGaps closes gaps of all numbers.
func (s *state) closeGaps(g gaps) {
	if g == 0 {
		return
	}
	if g.has(noUpper) {
		g |= half
	}
	if g.has(noLower) {
		g |= notZero
	}
	for i := range s.regs {
		s.regs[i].gaps &^= g
	}
	for i := range s.frames {
		for j := range s.frames[i].saved {
			s.frames[i].saved[j].gaps &^= g
		}
	}
}

// Flaw is something about how an instruction is executed that not every verifier accepts.
type Flaw uint8

// The flaws.
const (
	NoFlaw   Flaw = iota
	Moved         // accesses the context after a constant other than 0 was added to the address
	HalfSize      // passes a helper a size that only a comparison of the lower half bounds
	ZeroSize      // passes a helper a size that only != keeps from being 0
	OpenSize      // passes a helper a size that is certainly not a constant for the verifier
)

// Flawed is an instruction of a function that may have a flaw.
type Flawed struct {
	Insn int32
	Flaw
}

// note notes that the current instruction is executed with a flaw.
func (x *explorer) note(s *state, f Flaw) {
	if x.here.flaws == nil {
		x.here.flaws = make(map[Flawed]Level)
	}
	at := Flawed{int32(s.at.Insn), f}
	x.here.flaws[at] = surer(x.here.flaws[at], s.level)
}

// MayBeFlawed returns the instructions of a function that may have flaws of sizes: calls of helpers with a size that is not a constant.
func MayBeFlawed(code []bpfobj.Insn) (l []Flawed) {
	halves := slices.ContainsFunc(code, comparesHalf)
	for i := range code {
		if !code[i].IsHelper() {
			continue
		}
		for _, n := range facts.HelperNumbered(code[i].Imm).Sizes {
			if isConstant(code[:i], n.At) {
				continue
			}
			if halves {
				l = append(l, Flawed{int32(i), HalfSize})
			}
			if !n.Zero {
				l = append(l, Flawed{int32(i), ZeroSize})
			}
		}
	}
	return slices.Compact(l)
}

// comparesHalf reports whether an instruction compares the lower half of a number by order.
func comparesHalf(in bpfobj.Insn) bool {
	switch in.Op.JumpOp() {
	case asm.JGT, asm.JGE, asm.JLT, asm.JLE:
		return in.Op.Class() == asm.Jump32Class
	}
	return false
}

// isConstant reports whether a register is a constant at the end of code, as far as the last instruction that writes it shows.
func isConstant(code []bpfobj.Insn, r asm.Register) bool {
	for i := len(code) - 1; i >= 0; i-- {
		in := &code[i]
		if _, writes := in.Touches(); writes.Has(r) || in.Op.Class().IsJump() {
			return in.Op.Class().IsALU() && in.Op.ALUOp() == asm.Mov && !isRegister(in)
		}
	}
	return false
}

// gapsIn returns the gaps that matter in a function.
func gapsIn(code []bpfobj.Insn) (g gaps) {
	for _, f := range MayBeFlawed(code) {
		if g |= noUpper; f.Flaw == ZeroSize {
			g |= noLower
		}
	}
	for i := range code {
		if !code[i].IsHelper() {
			continue
		}
		sizes := facts.HelperNumbered(code[i].Imm).Sizes
		if slices.ContainsFunc(sizes, func(n facts.Size) bool { return !isConstant(code[:i], n.At) }) {
			return g | noLower
		}
	}
	return g
}

// giveSizes notes the sizes that a helper is given.
func (x *explorer) giveSizes(s *state, in *bpfobj.Insn) {
	if x.code.gaps == 0 || !in.IsHelper() {
		return
	}
	for _, n := range facts.HelperNumbered(in.Imm).Sizes {
		v := s.reg(n.At)
		if v.gaps.has(half) && !v.upperUnknown() {
			x.note(s, HalfSize)
		}
		if v.gaps.has(notZero) && !n.Zero {
			x.note(s, ZeroSize)
		}
		if v.gaps.has(open) && v.kind == scalar && v.bits == 0 && v.mask != 0 {
			x.note(s, OpenSize)
		}
	}
}
