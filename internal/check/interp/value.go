// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"math"

	"github.com/cilium/ebpf/asm"
)

// value is what is known of a register or a stack slot. The zero value is the constant 0.
type value struct {
	kind  valueKind
	taint bool // depends on the loader or user, but is one number on each load
	lost  bool // the verifier may know more: widen dropped a constant that it depends on, or its size was compared
	gaps  gaps // facts that verifiers may not know
	// A bit of a scalar is unknown if mask has a 1, and then 0 in bits. For pointers bits is an offset in bytes, two's complement.
	bits, mask uint64
	base       int32 // frame of a stack pointer; for data pointers see explorer.loadData
	src        int32 // source: 1 + a CO-RE record, or -1 - an index into the summary's origins; 0 for others
}

type valueKind uint8

const (
	scalar   valueKind = iota
	stackPtr           // offset bits from the top of frame base
	stackAny           // an unknown address in some frame
	dataPtr            // address of read-only data or a kconfig variable
	nonNull            // a pointer that is not null
	nonZero            // an address that verifiers take for a number
	anyPtr             // a pointer that may be null
	ctxPtr             // address of the context plus bits
)

// unknown is any number.
var unknown = value{mask: ^uint64(0)}

func constant(v uint64) value { return value{bits: v} }

func (a value) isStack() bool { return a.kind == stackPtr || a.kind == stackAny }

// keepsOffset reports whether a is a pointer with a known offset.
func (a value) keepsOffset() bool { return a.kind == stackPtr || a.kind == dataPtr || a.kind == ctxPtr }

func (a value) isConst() bool { return a.kind == scalar && a.mask == 0 }

// isBlank reports whether a is unknown, whatever its source and taint.
func (a value) isBlank() bool { return a.kind == scalar && a.mask == math.MaxUint64 }

// covers reports whether b cannot be anything that a cannot be.
func (a value) covers(b value) bool {
	switch {
	case a.isBlank():
		// Stack pointers must not be forgotten: a store through them matters.
		return (a.taint || !b.taint) && !b.isStack() && a.gaps.has(b.gaps)
	case a.kind != b.kind || a.taint != b.taint:
		return a.kind == stackAny && b.kind == stackPtr
	case a.kind == scalar:
		return b.mask&^a.mask == 0 && (a.bits^b.bits)&^a.mask == 0 && a.gaps.has(b.gaps)
	case a.keepsOffset():
		return a.bits == b.bits && a.base == b.base
	}
	return true
}

// join covers both.
func join(a, b value) value {
	switch {
	case a.covers(b):
		return a
	case b.covers(a):
		return b
	case a.isStack() || b.isStack():
		return value{kind: stackAny}
	case a.kind == scalar && b.kind == scalar:
		m := a.mask | b.mask | (a.bits ^ b.bits)
		return value{bits: a.bits &^ m, mask: m, taint: a.taint || b.taint, lost: a.lost || b.lost}
	}
	return value{mask: math.MaxUint64, lost: a.lost || b.lost}
}

// low32 is the lower half, zero-extended.
func (a value) low32() value { return a.trim(4) }

// trim keeps the lower n bytes.
func (a value) trim(n int) value {
	if n >= 8 {
		return a
	}
	mask := uint64(1)<<(8*n) - 1
	if a.kind != scalar {
		return value{mask: mask, taint: a.taint, lost: a.lost}
	}
	a.bits, a.mask = a.bits&mask, a.mask&mask
	if n < 4 {
		a.gaps &^= noUpper
	}
	return a
}

// max is the greatest number that a scalar can be. The least is bits.
func (a value) max() uint64 { return a.bits | a.mask }

// has reports whether a scalar can be x.
func (a value) has(x uint64) bool { return x&^a.mask == a.bits }

// meets reports whether two scalars can be equal.
func (a value) meets(b value, is32 bool) bool {
	if is32 {
		a, b = a.low32(), b.low32()
	}
	switch {
	case b.isConst():
		return a.has(b.bits)
	case a.isConst():
		return b.has(a.bits)
	}
	return (a.bits^b.bits)&^a.mask&^b.mask == 0
}

// signed returns the bounds as numbers of a width in bits.
func (a value) signed(width int) (lo, hi int64) {
	top := uint64(1) << (width - 1)
	if m := a.max(); m < top {
		return int64(a.bits), int64(m)
	}
	ext := func(v uint64) int64 { return int64(v<<(64-width)) >> (64 - width) }
	if a.mask&top == 0 {
		return ext(a.bits), ext(a.bits | a.mask)
	}
	return ext(a.bits | top), ext((a.bits | a.mask) &^ top)
}

// alu computes a binary operation on scalars as far as every verifier does. The bits follow the kernel's tnum_add and so on.
func alu(op asm.ALUOp, a, b value, is32 bool) value {
	width, most := uint64(64), b.max() // the whole amount of a shift matters, also for a half
	if is32 {
		a, b, width = a.low32(), b.low32(), 32
	}
	taint, lost, src := a.taint || b.taint, a.lost || b.lost, a.src
	if src == 0 {
		src = b.src
	}
	fixed := b.isConst() || b.taint // verifiers before 6.10 need a fixed b for some operations
	shift := b.isConst() && most < width
	r := unknown
	switch {
	case op == asm.Add:
		sm, sv := a.mask+b.mask, a.bits+b.bits
		r.mask = ((sm + sv) ^ sv) | a.mask | b.mask
		r.bits = sv &^ r.mask
	case op == asm.Sub:
		dv := a.bits - b.bits
		r.mask = (dv + a.mask) ^ (dv - b.mask) | a.mask | b.mask
		r.bits = dv &^ r.mask
	case op == asm.And:
		r.bits = a.bits & b.bits
		r.mask = (a.bits | a.mask) & (b.bits | b.mask) &^ r.bits
	case op == asm.Or && fixed:
		r.bits = a.bits | b.bits
		r.mask = (a.mask | b.mask) &^ r.bits
	case op == asm.Xor && fixed:
		r.mask = a.mask | b.mask
		r.bits = (a.bits ^ b.bits) &^ r.mask
	case op == asm.Mul && fixed:
		if a.isConst() && b.isConst() {
			r = constant(a.bits * b.bits)
		} else if a.isConst() && a.bits == 0 || b.isConst() && b.bits == 0 {
			r = constant(0)
		}
	case op == asm.LSh && shift:
		r.bits, r.mask = a.bits<<b.bits, a.mask<<b.bits
	case op == asm.RSh && shift:
		r.bits, r.mask = a.bits>>b.bits, a.mask>>b.bits
	case op == asm.ArSh && shift && is32:
		r.mask = uint64(uint32(int32(a.mask) >> b.bits))
		r.bits = uint64(uint32(int32(a.bits)>>b.bits)) &^ r.mask
	case op == asm.ArSh && shift:
		r.mask = uint64(int64(a.mask) >> b.bits)
		r.bits = uint64(int64(a.bits)>>b.bits) &^ r.mask
	default:
		r.taint, r.lost = taint, lost
		return r
	}
	if is32 {
		r = r.low32()
	}
	if r.mask != 0 {
		r.taint, r.lost = taint, lost
	}
	if !r.isBlank() {
		r.src = src
	}
	return r
}

// verdict is the result of a comparison. The opposite comparison has -verdict.
type verdict int8

const (
	never  verdict = -1
	either verdict = 0
	always verdict = 1
)

func decided(yes, no bool) verdict {
	switch {
	case yes:
		return always
	case no:
		return never
	}
	return either
}

// compare decides a conditional jump as far as every verifier does.
func compare(op asm.JumpOp, a, b value, is32 bool) verdict {
	switch op {
	case asm.JNE, asm.JLT, asm.JLE, asm.JSLT, asm.JSLE:
		return -compare(negated(op), a, b, is32)
	}
	if op == asm.JEq && b.isConst() && b.bits == 0 && !is32 && (a.kind == nonNull || a.kind == nonZero || a.kind == dataPtr) {
		return never
	}
	// A tainted value is a constant on every load, so verifiers that only compare with constants decide too.
	if a.kind != scalar || b.kind != scalar || !b.isConst() && !b.taint {
		return either
	}
	width := 64
	if is32 {
		a, b, width = a.low32(), b.low32(), 32
	}
	ordered, sign := op != asm.JEq && op != asm.JSet, uint(width-1)
	if ordered && a.mask != math.MaxUint64 && a.max()>>sign != 0 && a.mask>>sign&1 != 0 {
		return either // 7.2 keeps bounds of one kind, signed or unsigned
	}
	alo, ahi := a.signed(width)
	blo, bhi := b.signed(width)
	switch op {
	case asm.JEq:
		both := a.isConst() && b.isConst()
		return decided(both && a.bits == b.bits, both && a.bits != b.bits)
	case asm.JGT:
		return decided(a.bits > b.max(), a.max() <= b.bits)
	case asm.JGE:
		return decided(a.bits >= b.max(), a.max() < b.bits)
	case asm.JSGT:
		return decided(alo > bhi, ahi <= blo)
	case asm.JSGE:
		return decided(alo >= bhi, ahi < blo)
	case asm.JSet: // a has some bit of b
		return decided(a.bits&b.bits != 0, (a.bits|a.mask)&(b.bits|b.mask) == 0)
	}
	return either
}

// where is a scalar for which a comparison with n holds. If it cannot hold the result is unknown: a verifier that does not notice
// goes on with a contradictory state.
func (a value) where(op asm.JumpOp, n uint64, is32 bool) value {
	a.gaps = a.gapsAfter(op, n, is32)
	switch op {
	case asm.JNE:
		return a
	case asm.JSet:
		if compare(op, a, constant(n), is32) != either {
			return unknown
		}
		return a
	case asm.JEq:
		if !a.meets(constant(n), is32) {
			return unknown
		}
		if !is32 {
			return value{bits: n, src: a.src}
		}
		a.bits, a.mask = a.bits&^math.MaxUint32|n&math.MaxUint32, a.mask&^math.MaxUint32
		a.taint = a.taint && a.mask != 0
		return a
	}
	a.lost = a.lost || !a.isConst()
	return a
}

// Exactly one of two opposites holds. Two exchanged ones are equal if the operands are exchanged.
var (
	opposites = [][2]asm.JumpOp{
		{asm.JEq, asm.JNE}, {asm.JGT, asm.JLE}, {asm.JGE, asm.JLT}, {asm.JSGT, asm.JSLE}, {asm.JSGE, asm.JSLT},
	}
	exchanged = [][2]asm.JumpOp{{asm.JGT, asm.JLT}, {asm.JGE, asm.JLE}, {asm.JSGT, asm.JSLT}, {asm.JSGE, asm.JSLE}}
)

func other(op asm.JumpOp, pairs [][2]asm.JumpOp) asm.JumpOp {
	for _, p := range pairs {
		switch op {
		case p[0]:
			return p[1]
		case p[1]:
			return p[0]
		}
	}
	return op
}

func negated(op asm.JumpOp) asm.JumpOp { return other(op, opposites) }
func flipped(op asm.JumpOp) asm.JumpOp { return other(op, exchanged) }
