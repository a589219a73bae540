// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// TestALU checks that what is known of a result holds for every number that
// the operands can be.
func TestALU(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	sample := func() (value, uint64) {
		m := rnd.Uint64() & rnd.Uint64() & rnd.Uint64()
		if rnd.IntN(2) == 0 {
			m = 0
		}
		v := rnd.Uint64() >> rnd.IntN(64) &^ m
		return value{v: v, m: m}, v | rnd.Uint64()&m
	}
	for range 200_000 {
		a, x := sample()
		b, y := sample()
		is32 := rnd.IntN(2) == 0
		ops := []asm.ALUOp{asm.Add, asm.Sub, asm.Mul, asm.Or, asm.And, asm.LSh, asm.RSh, asm.Xor, asm.ArSh}
		op := ops[rnd.IntN(len(ops))]
		if op == asm.LSh || op == asm.RSh || op == asm.ArSh {
			b, y = constant(uint64(rnd.IntN(32))), 0
			y = b.v
		}
		want := concrete(op, x, y, is32)
		if r := alu(op, a, b, is32); want&^r.m != r.v {
			t.Fatalf("%v, 32 bits %t: %x of %+v and %x of %+v give %x, not in %+v", op, is32, x, a, y, b, want, r)
		}
		cond := []asm.JumpOp{asm.JEq, asm.JNE, asm.JGT, asm.JGE, asm.JLT, asm.JLE, asm.JSGT, asm.JSGE, asm.JSLT, asm.JSLE, asm.JSet}[rnd.IntN(11)]
		b = constant(y)
		if got := compare(cond, a, b, is32); got != either && (got == always) != holds(cond, x, y, is32) {
			t.Fatalf("condition %v, 32 bits %t: %x of %+v with %x is decided wrongly", cond, is32, x, a, y)
		}
		if j := join(a, b); !j.covers(a) || !j.covers(b) {
			t.Fatalf("%+v does not cover %+v and %+v", j, a, b)
		}
	}
}

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

// TestVariableOperand computes with a second operand of which some bits are not known. Verifiers before
// Linux 6.10 make something of that for an addition, a subtraction and a mask only, even where the bits
// that are known decide the result.
func TestVariableOperand(t *testing.T) {
	full, low := constant(^uint64(0)), value{m: 1}
	for _, op := range []asm.ALUOp{asm.Or, asm.Xor, asm.Mul, asm.LSh, asm.RSh, asm.ArSh} {
		for _, a := range []value{full, constant(0), constant(6)} {
			if r := alu(op, a, low, false); r != unknown {
				t.Errorf("%v of %+v and one unknown bit: %+v", op, a, r)
			}
		}
	}
	if r := alu(asm.And, constant(6), low, false); !r.isConst() {
		t.Errorf("6 and the lowest bit: %+v", r)
	}
	if r := alu(asm.Or, low, constant(1), false); !r.isConst() {
		t.Errorf("the lowest bit or 1: %+v", r)
	}
}
