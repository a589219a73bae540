package check

import (
	"math/rand/v2"
	"testing"
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
		ops := []uint8{0x00, 0x10, 0x20, 0x40, 0x50, 0x60, 0x70, 0xa0, 0xc0}
		op := ops[rnd.IntN(len(ops))]
		if op == 0x60 || op == 0x70 || op == 0xc0 {
			b, y = constant(uint64(rnd.IntN(32))), 0
			y = b.v
		}
		want := concrete(op, x, y, is32)
		if r := alu(op, a, b, is32); want&^r.m != r.v {
			t.Fatalf("op %02x 32 bits %t: %x of %+v and %x of %+v give %x, not in %+v", op, is32, x, a, y, b, want, r)
		}
		cond := []uint8{0x10, 0x50, 0x20, 0x30, 0xa0, 0xb0, 0x60, 0x70, 0xc0, 0xd0, 0x40}[rnd.IntN(11)]
		b = constant(y)
		if got := compare(cond, a, b, is32); got != either && (got == always) != holds(cond, x, y, is32) {
			t.Fatalf("condition %02x 32 bits %t: %x of %+v with %x is decided wrongly", cond, is32, x, a, y)
		}
		if j := join(a, b); !j.covers(a) || !j.covers(b) {
			t.Fatalf("%+v does not cover %+v and %+v", j, a, b)
		}
	}
}

func concrete(op uint8, x, y uint64, is32 bool) (r uint64) {
	if is32 {
		x, y = uint64(uint32(x)), uint64(uint32(y))
	}
	switch op {
	case 0x00:
		r = x + y
	case 0x10:
		r = x - y
	case 0x20:
		r = x * y
	case 0x40:
		r = x | y
	case 0x50:
		r = x & y
	case 0x60:
		r = x << y
	case 0x70:
		r = x >> y
	case 0xa0:
		r = x ^ y
	case 0xc0:
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

func holds(op uint8, x, y uint64, is32 bool) bool {
	sx, sy := int64(x), int64(y)
	if is32 {
		x, y = uint64(uint32(x)), uint64(uint32(y))
		sx, sy = int64(int32(x)), int64(int32(y))
	}
	switch op {
	case 0x10:
		return x == y
	case 0x50:
		return x != y
	case 0x20:
		return x > y
	case 0x30:
		return x >= y
	case 0xa0:
		return x < y
	case 0xb0:
		return x <= y
	case 0x60:
		return sx > sy
	case 0x70:
		return sx >= sy
	case 0xc0:
		return sx < sy
	case 0xd0:
		return sx <= sy
	}
	return x&y != 0
}
