// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// TestVague explores random programs that index values of maps, as verifiers with and without Unequal. Vague must have every
// access that is out of bounds only without. There are a few that are within bounds to newer ones by accident: a path on which a
// number has no value left, which goes on with an unknown number, covers others.
func TestVague(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	older, newer := *allFeatures(), *allFeatures()
	older.Features, older.Precise, newer.Precise = older.Features&^Unequal, true, true
	expected, missing, sure := 0, 0, 0
	for range slow.Some(4000) {
		o, pr := new(bpfobj.Object), &bpfobj.Program{Funcs: []int{0, 1}}
		for f := range pr.Funcs {
			o.Funcs = append(o.Funcs, bpfobj.Function{Insns: indexing(&source{Rand: rnd}, f == 0)})
		}
		r, still := Explore(t.Context(), o, pr, &older), Explore(t.Context(), o, pr, &newer).Far()
		far, got := r.Far(), r.Vague()
		for at, l := range far {
			if got[at] != l && got[at] != Unreached {
				t.Fatalf("%v: level %d, want %d", at, got[at], l)
			}
			if got[at] == Unreached {
				sure++
			}
			if still[at] == Unreached {
				if expected++; got[at] == Unreached {
					missing++
				}
			}
		}
	}
	t.Logf("%d accesses only without, %d of them missing, %d with both", expected, missing, sure)
	if missing > expected/100 {
		t.Error("too many are missing")
	}
	if expected < 200 || sure < 50 {
		t.Error("too few of one kind")
	}
}

// TestVagueBranch accesses the value of a map out of bounds where a number that is not 0 is less than 1.
func TestVagueBranch(t *testing.T) {
	in := allFeatures()
	in.Features &^= Unequal
	at := bpfobj.Site{Insn: 9}
	for least, want := range []Level{Unreached, Certain, Certain} {
		o := &bpfobj.Object{Funcs: []bpfobj.Function{{Insns: []insn{
			{Op: bpfobj.OpCall, Imm: int64(asm.FnGetPrandomU32)},
			{Op: asm.Mov.Op(asm.RegSource), Dst: 6, Src: 0},
			{Op: bpfobj.OpCall, Imm: int64(asm.FnGetPrandomU32)},
			{Op: asm.Mov.Op(asm.RegSource), Dst: 7, Src: 0},
			{Op: bpfobj.OpCall, Imm: int64(asm.FnMapLookupElem)},
			{Op: asm.JGT.Op(asm.ImmSource), Dst: 7, Imm: 16, Off: 4},
			{Op: asm.JEq.Op(asm.ImmSource), Dst: 7, Off: 3},
			{Op: asm.JGE.Op(asm.ImmSource), Dst: 7, Imm: int64(least), Off: 2},
			{Op: asm.Add.Op(asm.RegSource), Dst: 0, Src: 6},
			{Op: asm.LoadMemOp(asm.Byte), Dst: 1, Src: 0},
			{Op: bpfobj.OpExit},
		}}}}
		r := Explore(t.Context(), o, &bpfobj.Program{Funcs: []int{0}}, in)
		if far, vague := r.Far()[at], r.Vague()[at]; far != want || vague != want {
			t.Errorf("%d: %d, %d vague, want %d", least, far, vague, want)
		}
	}
}

// indexing makes a function of comparisons, sums, spills and accesses of values of maps. The first one calls the second.
func indexing(s *source, first bool) []insn {
	num := func() asm.Register { return pick[asm.Register](s, 6, 7, 8) }
	set := func(r, to asm.Register) insn { return insn{Op: asm.Mov.Op(asm.RegSource), Dst: r, Src: to} }
	var steps [][]insn // jumps skip whole steps
	step := func(code ...insn) { steps = append(steps, code) }
	jump := func(r asm.Register, imm int64, ops ...asm.JumpOp) {
		step(insn{Op: pick(s, ops...).Op(asm.ImmSource), Dst: r, Imm: imm, Off: int16(1 + s.IntN(3))})
	}
	for r := asm.R6; r <= asm.R8; r++ {
		if first {
			step(insn{Op: bpfobj.OpCall, Imm: int64(asm.FnGetPrandomU32)}, set(r, asm.R0))
		} else {
			step(set(r, asm.R1))
		}
		jump(r, pick[int64](s, 1, 2, 16), asm.JGT)
		jump(r, 0, asm.JEq)
	}
	for range 4 + s.IntN(12) {
		switch s.IntN(10) {
		case 9:
			r, n := num(), pick[int64](s, 1, 16)
			steps = append(steps, []insn{
				{Op: bpfobj.OpCall, Imm: int64(asm.FnMapLookupElem)},
				{Op: asm.JGT.Op(asm.ImmSource), Dst: r, Imm: n, Off: 4},
				{Op: asm.JEq.Op(asm.ImmSource), Dst: r, Off: 3},
				{Op: asm.Add.Op(asm.ImmSource), Dst: r, Imm: -1},
				{Op: asm.Add.Op(asm.RegSource), Dst: 0, Src: pick(s, r, r, num())},
				{Op: asm.LoadMemOp(asm.Byte), Dst: 9, Src: 0},
				{Op: asm.Mov.Op(asm.ImmSource), Dst: 0},
			})
		case 0, 1:
			jump(num(), s.small(), asm.JEq, asm.JNE, asm.JGT, asm.JLT)
		case 2, 3:
			step(insn{Op: asm.Add.Op(asm.ImmSource), Dst: num(), Imm: pick[int64](s, -1, -1, -2, 1)})
		case 4:
			step(insn{Op: pick(s, asm.Mov, asm.Add, asm.And).Op(asm.RegSource), Dst: num(), Src: num()})
		case 5:
			step(insn{Op: asm.StoreMemOp(s.size()), Dst: asm.RFP, Src: num(), Off: s.slot()})
		case 6:
			step(insn{Op: asm.LoadMemOp(s.size()), Dst: num(), Src: asm.RFP, Off: s.slot()})
		case 7:
			if first {
				step(set(asm.R1, num()), call(1), set(num(), asm.R0))
			}
		default:
			step(insn{Op: bpfobj.OpCall, Imm: int64(asm.FnMapLookupElem)}, insn{Op: asm.Add.Op(asm.RegSource), Dst: 0, Src: num()},
				insn{Op: asm.LoadMemOp(asm.Byte), Dst: 9, Src: 0})
		}
	}
	for i, code := range steps {
		if len(code) == 1 && code[0].Op.Class().IsJump() {
			skip := 0
			for _, over := range steps[i+1 : min(i+1+int(code[0].Off), len(steps))] {
				skip += len(over)
			}
			code[0].Off = int16(skip)
		}
		s.add(code...)
	}
	s.add(set(asm.R0, num()), insn{Op: bpfobj.OpExit})
	return s.code
}
