// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

// TestRelevant changes the values of records that are not relevant: the result must not change.
func TestRelevant(t *testing.T) {
	raceflag.SkipSerial(t)
	rnd := rand.New(rand.NewPCG(5, 5))
	irrelevant, relevant := 0, 0
	programs := 250
	if raceflag.Enabled {
		programs = 80
	}
	for range programs {
		o, pr := new(bpfobj.Object), new(bpfobj.Program)
		records := int32(0)
		for f, code := range (&source{Rand: rnd}).funcs() {
			for i := range code {
				if in := &code[i]; in.Op.Class().IsALU() && !isRegister(in) && in.Op.ALUOp() != asm.Neg && rnd.IntN(2) == 0 {
					records++
					in.Record = records
				}
			}
			o.Funcs, pr.Funcs = append(o.Funcs, bpfobj.Function{Insns: code}), append(pr.Funcs, f)
		}
		values := make([]uint64, records)
		features := StImm
		for f, has := range map[Features]bool{Partial: records%2 == 0, Narrow: records%3 == 0, Ranges: records%5 != 0} {
			if has {
				features |= f
			}
		}
		explore := func() *Result {
			return Explore(t.Context(), o, pr, &Input{
				Features: features,
				Record:   func(r int) (uint64, bool) { return values[r], true },
			})
		}
		any := func() uint64 { return []uint64{0, 1, 2, 8, 16, 4096, math.MaxUint32, rnd.Uint64()}[rnd.IntN(8)] }
		for i := range values {
			values[i] = any()
		}
		first := explore()
		for range 4 {
			for i := range values {
				if !slices.Contains(first.Relevant().Records, int32(i)) {
					values[i] = any()
					irrelevant++
				} else {
					relevant++
				}
			}
			r := explore()
			if r.GaveUp != first.GaveUp || r.Odd != first.Odd || !reflect.DeepEqual(r.Relevant(), first.Relevant()) {
				t.Fatalf("%v, first %v", r.Relevant(), first.Relevant())
			}
			for f := range o.Funcs {
				for i := range o.Funcs[f].Insns {
					at := bpfobj.Site{Fn: f, Insn: i}
					g, ok := r.Guard(at)
					g0, ok0 := first.Guard(at)
					if r.Reached(at) != first.Reached(at) || ok != ok0 || g.Branch != g0.Branch || g.Fact != nil && *g.Fact != *g0.Fact {
						t.Fatalf("%+v: %d, first %d", at, r.Reached(at), first.Reached(at))
					}
				}
			}
		}
	}
	t.Logf("%d values that count, %d that do not", relevant, irrelevant)
	if relevant < 1000 || irrelevant < 1000 {
		t.Error("too few of one kind")
	}
}

// TestRelevantZero stores a part of a value. The verifier keeps that only if it is 0, so the value matters without a
// comparison.
func TestRelevantZero(t *testing.T) {
	o := &bpfobj.Object{Funcs: []bpfobj.Function{{Insns: []insn{
		{Op: asm.Mov.Op(asm.ImmSource), Dst: 2, Record: 1},
		{Op: asm.StoreMemOp(asm.Word), Dst: asm.RFP, Src: 2, Off: -8},
		{Op: asm.LoadMemOp(asm.Word), Dst: 3, Src: asm.RFP, Off: -8},
		{Op: asm.JEq.Op(asm.ImmSource), Dst: 3, Off: 1},
		{Op: bpfobj.OpExit},
		{Op: bpfobj.OpExit},
	}}}}
	for _, v := range []uint64{0, 5} {
		r := Explore(t.Context(), o, &bpfobj.Program{Funcs: []int{0}}, &Input{Record: func(int) (uint64, bool) { return v, true }})
		if !slices.Equal(r.Relevant().Records, []int32{0}) {
			t.Errorf("%d: %v", v, r.Relevant())
		}
	}
}

// TestRelevantRanges compares a number with known bounds with numbers outside.
func TestRelevantRanges(t *testing.T) {
	o := &bpfobj.Object{Funcs: []bpfobj.Function{{Insns: []insn{
		{Op: bpfobj.OpCall, Imm: int64(asm.FnGetPrandomU32)},
		{Op: asm.And.Op(asm.ImmSource), Imm: 7},
		{Op: asm.Mov.Op(asm.ImmSource), Dst: 1, Imm: 12},
		{Op: asm.Mul.Op(asm.RegSource), Dst: 0, Src: 1},
		{Op: asm.JGT.Op(asm.ImmSource), Dst: 0, Imm: 84, Off: 1},
		{Op: bpfobj.OpExit},
		{Op: bpfobj.OpExit},
	}}}}
	for _, ranges := range []Features{0, Ranges} {
		r := Explore(t.Context(), o, &bpfobj.Program{Funcs: []int{0}}, &Input{Features: ranges})
		if got := r.Reached(bpfobj.Site{Insn: 6}); (got == Unreached) != ranges.Has(Ranges) || !r.Relevant().Features.Has(Ranges) {
			t.Errorf("ranges %b: %v, %v", ranges, got, r.Relevant())
		}
	}
}
