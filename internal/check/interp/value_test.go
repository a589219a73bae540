// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// TestALU checks that values include every number that is possible.
func TestALU(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	number := func() uint64 { return rnd.Uint64() >> rnd.IntN(64) }
	sample := func() (value, uint64) {
		m := number() & rnd.Uint64()
		if rnd.IntN(3) == 0 {
			m = 0
		}
		v := number() &^ m
		x := v | rnd.Uint64()&m
		return value{bits: v, mask: m}, x
	}
	known, refined := 0, 0 // results that are partly known, comparisons that add something
	for range 400_000 {
		a, x := sample()
		b, y := sample()
		is32 := rnd.IntN(2) == 0
		ops := []asm.ALUOp{asm.Add, asm.Sub, asm.Mul, asm.Or, asm.And, asm.LSh, asm.RSh, asm.Xor, asm.ArSh}
		op := ops[rnd.IntN(len(ops))]
		if op == asm.LSh || op == asm.RSh || op == asm.ArSh {
			y = uint64(rnd.IntN(32))
			b = constant(y)
		}
		want := concrete(op, x, y, is32)
		r := alu(op, a, b, is32)
		if !r.holds(want) {
			t.Fatalf("%v, 32 bits %t: %x of %+v and %x of %+v give %x, not in %+v", op, is32, x, a, y, b, want, r)
		}
		if !r.isConst() && !r.isBlank() {
			known++
		}
		if n := 1 << rnd.IntN(4); !a.trim(n).holds(x & (math.MaxUint64 >> (64 - 8*n))) {
			t.Fatalf("%d bytes of %x of %+v: %+v", n, x, a, a.trim(n))
		}
		cond := []asm.JumpOp{asm.JEq, asm.JNE, asm.JGT, asm.JGE, asm.JLT, asm.JLE, asm.JSGT, asm.JSGE, asm.JSLT, asm.JSLE, asm.JSet}[rnd.IntN(11)]
		c, z := constant(y), y
		if rnd.IntN(2) == 0 {
			z = x + uint64(rnd.IntN(5)) - 2
			c = constant(z)
		}
		does := holds(cond, x, z, is32)
		got := compare(cond, a, c, is32)
		if got != either && (got == always) != does {
			t.Fatalf("condition %v, 32 bits %t: %x of %+v with %x is decided wrongly", cond, is32, x, a, z)
		}
		if does != holds(flipped(cond), z, x, is32) && cond != asm.JSet {
			t.Fatalf("condition %v is not flipped by %v", cond, flipped(cond))
		}
		if got == either && cond != asm.JSet {
			if !does {
				cond = negated(cond)
			}
			w := a.where(cond, z, is32)
			if !w.holds(x) {
				t.Fatalf("where %x of %+v compares by %v with %x, 32 bits %t, it is not in %+v", x, a, cond, z, is32, w)
			}
			if w.mask != a.mask || w.lost {
				refined++
			}
			if w = a.where(negated(cond), z, is32); !w.isBlank() && w.isConst() && !a.holds(w.bits) && !is32 {
				t.Fatalf("%+v is %x where that cannot be: %v %x", a, w.bits, negated(cond), z)
			}
		}
		if j := join(a, b); !j.covers(a) || !j.covers(b) {
			t.Fatalf("%+v does not cover %+v and %+v", j, a, b)
		}
		if a.covers(b) && !a.holds(y) {
			t.Fatalf("%+v covers %+v, but not %x", a, b, y)
		}
	}
	t.Logf("%d results that are partly known, %d comparisons that add something", known, refined)
	if known < 10_000 || refined < 10_000 {
		t.Error("too few of one kind")
	}
}

// holds reports whether a scalar can be x, and its half the half of x.
func (a value) holds(x uint64) bool { return a.has(x) && a.low32().has(x&math.MaxUint32) }

func concrete(op asm.ALUOp, x, y uint64, is32 bool) (r uint64) {
	if is32 {
		x, y = uint64(uint32(x)), uint64(uint32(y))
	}
	switch op {
	case asm.Add:
		r = x + y
	case asm.Sub:
		r = x - y
	case asm.Mul:
		r = x * y
	case asm.Or:
		r = x | y
	case asm.And:
		r = x & y
	case asm.LSh:
		r = x << y
	case asm.RSh:
		r = x >> y
	case asm.Xor:
		r = x ^ y
	case asm.ArSh:
		r = uint64(int64(x) >> y)
		if is32 {
			r = uint64(int32(x) >> y)
		}
	}
	if is32 {
		r = uint64(uint32(r))
	}
	return r
}

func holds(op asm.JumpOp, x, y uint64, is32 bool) bool {
	sx, sy := int64(x), int64(y)
	if is32 {
		x, y = uint64(uint32(x)), uint64(uint32(y))
		sx, sy = int64(int32(x)), int64(int32(y))
	}
	switch op {
	case asm.JEq:
		return x == y
	case asm.JNE:
		return x != y
	case asm.JGT:
		return x > y
	case asm.JGE:
		return x >= y
	case asm.JLT:
		return x < y
	case asm.JLE:
		return x <= y
	case asm.JSGT:
		return sx > sy
	case asm.JSGE:
		return sx >= sy
	case asm.JSLT:
		return sx < sy
	case asm.JSLE:
		return sx <= sy
	}
	return x&y != 0
}

// TestVariableOperand computes with a second operand with unknown bits. Verifiers before Linux 6.10 do that for
// additions, subtractions and masks only, even if the known bits decide the result.
func TestVariableOperand(t *testing.T) {
	full, low := constant(^uint64(0)), value{mask: 1}
	for _, op := range []asm.ALUOp{asm.Or, asm.Xor, asm.Mul, asm.LSh, asm.RSh, asm.ArSh} {
		for _, a := range []value{full, constant(0), constant(6)} {
			if r := alu(op, a, low, false); r != unknown {
				t.Errorf("%v of %+v and one unknown bit: %+v", op, a, r)
			}
		}
	}
	if r := alu(asm.LSh, constant(6), value{bits: 4, mask: math.MaxUint32 << 32}, true); r != unknown {
		t.Errorf("a half shifted by a number of which the lower half is known: %+v", r)
	}
	if r := alu(asm.And, constant(6), low, false); !r.isConst() {
		t.Errorf("6 and the lowest bit: %+v", r)
	}
	if r := alu(asm.Or, low, constant(1), false); !r.isConst() {
		t.Errorf("the lowest bit or 1: %+v", r)
	}
}

// TestSignUnknown orders numbers whose sign is unknown and other bits are known. Linux 7.2 has one interval of a
// number, signed or unsigned, and may not know the other.
func TestSignUnknown(t *testing.T) {
	for _, c := range []struct {
		a    value
		is32 bool
		want verdict
	}{
		{value{mask: ^uint64(0xfff)}, false, either},
		{value{mask: 0xffff_f000}, true, either},
		{value{mask: 0x7fff_f000}, true, always},
		{value{mask: math.MaxInt64 &^ 0xfff}, false, always},
		{value{bits: 1 << 63, mask: math.MaxInt64 &^ 0xfff}, false, always},
	} {
		if got := compare(asm.JLT, c.a, constant(math.MaxUint64), c.is32); got != c.want {
			t.Errorf("%+v < -1, 32 bits %t: %d, want %d", c.a, c.is32, got, c.want)
		}
	}
}
