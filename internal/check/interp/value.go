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
	// A bit of a scalar is unknown if m has a 1, and then 0 in v. For pointers v is an offset in bytes, two's complement.
	v, m uint64
	base int32 // frame of a stack pointer; for data pointers see explorer.loadData
	src  int32 // source: 1 + a CO-RE record, or -1 - an index into the summary's origins; 0 for others
}

type valueKind uint8

const (
	scalar   valueKind = iota
	stackPtr           // offset v from the top of frame base
	stackAny           // an unknown address in some frame
	dataPtr            // address of read-only data or a kconfig variable
	nonNull            // a pointer that is not null
	nonZero            // an address that verifiers take for a number
	anyPtr             // a pointer that may be null
	ctxPtr             // address of the context plus v
)

// unknown is any number.
var unknown = value{m: ^uint64(0)}

func constant(v uint64) value { return value{v: v} }

func (a value) isStack() bool { return a.kind == stackPtr || a.kind == stackAny }

// keepsOffset reports whether a is a pointer with a known offset.
func (a value) keepsOffset() bool { return a.kind == stackPtr || a.kind == dataPtr || a.kind == ctxPtr }

func (a value) isConst() bool { return a.kind == scalar && a.m == 0 }

// isBlank reports whether a is unknown, whatever its source and taint.
func (a value) isBlank() bool { return a.kind == scalar && a.m == math.MaxUint64 }

// covers reports whether b cannot be anything that a cannot be.
func (a value) covers(b value) bool {
	switch {
	case a.isBlank():
		// Stack pointers must not be forgotten: a store through them matters.
		return (a.taint || !b.taint) && !b.isStack() && a.gaps.has(b.gaps)
	case a.kind != b.kind || a.taint != b.taint:
		return a.kind == stackAny && b.kind == stackPtr
	case a.kind == scalar:
		return b.m&^a.m == 0 && (a.v^b.v)&^a.m == 0 && a.gaps.has(b.gaps)
	case a.keepsOffset():
		return a.v == b.v && a.base == b.base
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
		m := a.m | b.m | (a.v ^ b.v)
		return value{v: a.v &^ m, m: m, taint: a.taint || b.taint, lost: a.lost || b.lost}
	}
	return value{m: math.MaxUint64, lost: a.lost || b.lost}
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
		return value{m: mask, taint: a.taint, lost: a.lost}
	}
	a.v, a.m = a.v&mask, a.m&mask
	if n < 4 {
		a.gaps &^= noUpper
	}
	return a
}

// max is the greatest number that a scalar can be. The least is v.
func (a value) max() uint64 { return a.v | a.m }

// has reports whether a scalar can be x.
func (a value) has(x uint64) bool { return x&^a.m == a.v }

// meets reports whether two scalars can be equal.
func (a value) meets(b value, is32 bool) bool {
	if is32 {
		a, b = a.low32(), b.low32()
	}
	switch {
	case b.isConst():
		return a.has(b.v)
	case a.isConst():
		return b.has(a.v)
	}
	return (a.v^b.v)&^a.m&^b.m == 0
}

// signed returns the bounds as numbers of a width in bits.
func (a value) signed(width int) (lo, hi int64) {
	top := uint64(1) << (width - 1)
	if m := a.max(); m < top {
		return int64(a.v), int64(m)
	}
	ext := func(v uint64) int64 { return int64(v<<(64-width)) >> (64 - width) }
	if a.m&top == 0 {
		return ext(a.v), ext(a.v | a.m)
	}
	return ext(a.v | top), ext((a.v | a.m) &^ top)
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
		sm, sv := a.m+b.m, a.v+b.v
		r.m = ((sm + sv) ^ sv) | a.m | b.m
		r.v = sv &^ r.m
	case op == asm.Sub:
		dv := a.v - b.v
		r.m = (dv + a.m) ^ (dv - b.m) | a.m | b.m
		r.v = dv &^ r.m
	case op == asm.And:
		r.v = a.v & b.v
		r.m = (a.v | a.m) & (b.v | b.m) &^ r.v
	case op == asm.Or && fixed:
		r.v = a.v | b.v
		r.m = (a.m | b.m) &^ r.v
	case op == asm.Xor && fixed:
		r.m = a.m | b.m
		r.v = (a.v ^ b.v) &^ r.m
	case op == asm.Mul && fixed:
		if a.isConst() && b.isConst() {
			r = constant(a.v * b.v)
		} else if a.isConst() && a.v == 0 || b.isConst() && b.v == 0 {
			r = constant(0)
		}
	case op == asm.LSh && shift:
		r.v, r.m = a.v<<b.v, a.m<<b.v
	case op == asm.RSh && shift:
		r.v, r.m = a.v>>b.v, a.m>>b.v
	case op == asm.ArSh && shift && is32:
		r.m = uint64(uint32(int32(a.m) >> b.v))
		r.v = uint64(uint32(int32(a.v)>>b.v)) &^ r.m
	case op == asm.ArSh && shift:
		r.m = uint64(int64(a.m) >> b.v)
		r.v = uint64(int64(a.v)>>b.v) &^ r.m
	default:
		r.taint, r.lost = taint, lost
		return r
	}
	if is32 {
		r = r.low32()
	}
	if r.m != 0 {
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
	if op == asm.JEq && b.isConst() && b.v == 0 && !is32 && (a.kind == nonNull || a.kind == nonZero || a.kind == dataPtr) {
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
	if ordered && a.m != math.MaxUint64 && a.max()>>sign != 0 && a.m>>sign&1 != 0 {
		return either // 7.2 keeps bounds of one kind, signed or unsigned
	}
	alo, ahi := a.signed(width)
	blo, bhi := b.signed(width)
	switch op {
	case asm.JEq:
		both := a.isConst() && b.isConst()
		return decided(both && a.v == b.v, both && a.v != b.v)
	case asm.JGT:
		return decided(a.v > b.max(), a.max() <= b.v)
	case asm.JGE:
		return decided(a.v >= b.max(), a.max() < b.v)
	case asm.JSGT:
		return decided(alo > bhi, ahi <= blo)
	case asm.JSGE:
		return decided(alo >= bhi, ahi < blo)
	case asm.JSet: // a has some bit of b
		return decided(a.v&b.v != 0, (a.v|a.m)&(b.v|b.m) == 0)
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
			return value{v: n, src: a.src}
		}
		a.v, a.m = a.v&^math.MaxUint32|n&math.MaxUint32, a.m&^math.MaxUint32
		a.taint = a.taint && a.m != 0
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
