// SPDX-License-Identifier: Apache-2.0

package interp

import "github.com/cilium/ebpf/asm"

// value is what is known of a register or a stack slot. The zero value is the
// constant 0; nothing is known of unknown.
type value struct {
	kind  valueKind
	taint bool // differs with what the loader or the user sets, though on each load it is one number
	v, m  uint64
	// A scalar's bit is unknown where m has a 1, and then 0 in v; otherwise it
	// is that of v. For pointers v is an offset in bytes, two's complement.
	base int32 // of a stack pointer: its frame; of a data pointer: see explorer.loadData
	src  int32 // where it comes from: 1 + a CO-RE record, or -1 - an index of the result's facts; 0 for the rest
}

type valueKind uint8

const (
	scalar   valueKind = iota
	stackPtr           // frame base, offset v from its top
	stackAny           // somewhere in some frame
	dataPtr            // in read-only data, or at a kconfig variable
	nonNull            // a pointer that is not null
	anyPtr             // a pointer that may be null
	ctxPtr             // the context's address and offset v
)

var unknown = value{m: ^uint64(0)}

func constant(v uint64) value { return value{v: v} }

func (a value) isStack() bool { return a.kind == stackPtr || a.kind == stackAny }

// keepsOffset reports whether a is a pointer whose offset is known.
func (a value) keepsOffset() bool { return a.kind == stackPtr || a.kind == dataPtr || a.kind == ctxPtr }

func (a value) isConst() bool { return a.kind == scalar && a.m == 0 }

// covers reports whether all that b can be, a can be too.
func (a value) covers(b value) bool {
	switch {
	case a.kind == scalar && a.m == ^uint64(0):
		// A pointer into the stack is not forgotten: a store through it counts.
		return (a.taint || !b.taint) && !b.isStack()
	case a.kind != b.kind || a.taint != b.taint:
		return a.kind == stackAny && b.kind == stackPtr
	case a.kind == scalar:
		return b.m&^a.m == 0 && (a.v^b.v)&^a.m == 0
	case a.keepsOffset():
		return a.v == b.v && a.base == b.base
	}
	return true
}

// join is the least that covers both.
func join(a, b value) value {
	if a.covers(b) {
		return a
	}
	if b.covers(a) {
		return b
	}
	switch {
	case a.isStack() || b.isStack():
		return value{kind: stackAny}
	case a.kind == scalar && b.kind == scalar:
		m := a.m | b.m | (a.v ^ b.v)
		return value{v: a.v &^ m, m: m, taint: a.taint || b.taint}
	}
	return unknown
}

// low32 is the value zero-extended from its lower half.
func (a value) low32() value {
	if a.kind != scalar {
		return value{m: 0xffffffff, taint: a.taint}
	}
	a.v, a.m = a.v&0xffffffff, a.m&0xffffffff
	return a
}

// trim keeps the lower n bytes.
func (a value) trim(n int) value {
	if a.kind != scalar || n >= 8 {
		return a
	}
	mask := uint64(1)<<(8*n) - 1
	a.v, a.m = a.v&mask, a.m&mask
	return a
}

func (a value) min() uint64 { return a.v }
func (a value) max() uint64 { return a.v | a.m }

// signed returns the bounds as numbers of the given width in bits.
func (a value) signed(width int) (lo, hi int64) {
	top := uint64(1) << (width - 1)
	ext := func(v uint64) int64 { return int64(v<<(64-width)) >> (64 - width) }
	if a.m&top == 0 {
		return ext(a.v), ext(a.v | a.m)
	}
	return ext(a.v | top), ext((a.v | a.m) &^ top)
}

// add is a+b, as the kernel's tnum_add.
func add(a, b value) value {
	sm, sv := a.m+b.m, a.v+b.v
	mu := ((sm + sv) ^ sv) | a.m | b.m
	return value{v: sv &^ mu, m: mu}
}

func sub(a, b value) value {
	dv := a.v - b.v
	mu := (dv + a.m) ^ (dv - b.m) | a.m | b.m
	return value{v: dv &^ mu, m: mu}
}

// alu computes a binary operation on scalars. What verifiers do not compute,
// such as a division, is unknown.
func alu(op asm.ALUOp, a, b value, is32 bool) value {
	width := uint64(64)
	if is32 {
		width = 32
	}
	shift := b.isConst() && b.v < width // also of a half register the whole amount counts
	if is32 {
		a, b = a.low32(), b.low32()
	}
	taint, src := a.taint || b.taint, a.src
	if src == 0 {
		src = b.src
	}
	if other := op != asm.Add && op != asm.Sub && op != asm.And; other && !b.isConst() && !b.taint {
		return value{m: ^uint64(0), taint: taint} // before Linux 6.10 verifiers give up
	}
	r := unknown
	switch op {
	case asm.Add:
		r = add(a, b)
	case asm.Sub:
		r = sub(a, b)
	case asm.Mul:
		if a.isConst() && b.isConst() {
			r = constant(a.v * b.v)
		} else if a.isConst() && a.v == 0 || b.isConst() && b.v == 0 {
			r = constant(0)
		}
	case asm.Or:
		v := a.v | b.v
		r = value{v: v, m: (a.m | b.m) &^ v}
	case asm.And:
		v := a.v & b.v
		r = value{v: v, m: (a.v | a.m) & (b.v | b.m) &^ v}
	case asm.Xor:
		m := a.m | b.m
		r = value{v: (a.v ^ b.v) &^ m, m: m}
	case asm.LSh:
		if shift {
			r = value{v: a.v << b.v, m: a.m << b.v}
		}
	case asm.RSh:
		if shift {
			r = value{v: a.v >> b.v, m: a.m >> b.v}
		}
	case asm.ArSh:
		if shift && is32 {
			r = value{v: uint64(uint32(int32(a.v) >> b.v)), m: uint64(uint32(int32(a.m) >> b.v))}
			r.v &^= r.m
		} else if shift {
			r = value{v: uint64(int64(a.v) >> b.v), m: uint64(int64(a.m) >> b.v)}
			r.v &^= r.m
		}
	}
	if is32 && (shift || op < asm.LSh || op == asm.Xor) { // a shift too far makes all bits unknown
		r = r.low32()
	}
	if r.taint = taint && r.m != 0; r.m != ^uint64(0) {
		r.src = src
	}
	return r
}

// verdict of a comparison.
type verdict uint8

const (
	either verdict = iota
	never
	always
)

func (v verdict) not() verdict {
	return [...]verdict{either: either, never: always, always: never}[v]
}

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
	if b.isConst() && b.v == 0 && !is32 && (a.kind == nonNull || a.kind == dataPtr) {
		switch op {
		case asm.JEq:
			return never
		case asm.JNE:
			return always
		}
	}
	// A tainted value is a constant on every load, so verifiers that compare
	// with constants alone decide too.
	if a.kind != scalar || b.kind != scalar || !b.isConst() && !b.taint {
		return either
	}
	width := 64
	if is32 {
		a, b, width = a.low32(), b.low32(), 32
	}
	alo, ahi := a.signed(width)
	blo, bhi := b.signed(width)
	switch op {
	case asm.JEq:
		return decided(a.isConst() && b.isConst() && a.v == b.v, a.isConst() && b.isConst() && a.v != b.v)
	case asm.JNE:
		return compare(asm.JEq, a, b, is32).not()
	case asm.JGT:
		return decided(a.min() > b.max(), a.max() <= b.min())
	case asm.JGE:
		return decided(a.min() >= b.max(), a.max() < b.min())
	case asm.JLT:
		return compare(asm.JGE, a, b, is32).not()
	case asm.JLE:
		return compare(asm.JGT, a, b, is32).not()
	case asm.JSGT:
		return decided(alo > bhi, ahi <= blo)
	case asm.JSGE:
		return decided(alo >= bhi, ahi < blo)
	case asm.JSLT:
		return compare(asm.JSGE, a, b, is32).not()
	case asm.JSLE:
		return compare(asm.JSGT, a, b, is32).not()
	case asm.JSet: // any bit of b set
		return decided(a.v&b.v != 0, a.max()&b.max() == 0)
	}
	return either
}
