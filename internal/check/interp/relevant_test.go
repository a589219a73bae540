// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"encoding/binary"
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
		o, pr := new(bpfobj.Code), new(bpfobj.Program)
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
		for f, has := range map[Features]bool{Partial: records%2 == 0, Narrow: records%3 == 0, Constants: records%5 != 0, Partly: records%7 != 0} {
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
					if r.Reached(at) != first.Reached(at) || ok != ok0 || g.Branch != g0.Branch || g.Origin != nil && *g.Origin != *g0.Origin {
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
	o := &bpfobj.Code{Funcs: []bpfobj.Function{{Insns: []insn{
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

// TestFeatures has a program for each way in which verifiers differ. Its last instruction is reached without the feature and not with
// it, and the feature is relevant.
func TestFeatures(t *testing.T) {
	const spill, fill = asm.OpCode(0x7b), asm.OpCode(0x79) // *(u64 *)(r10 - 8) = r1, r2 = *(u64 *)(r10 - 8)
	spilled := []insn{{Op: spill, Dst: asm.RFP, Src: 1, Off: -8}, {Op: fill, Dst: 2, Src: asm.RFP, Off: -8}}
	one := insn{Op: asm.Mov.Op(asm.ImmSource), Dst: 1, Imm: 1}
	never := func(op asm.OpCode, dst, src asm.Register, imm int64) []insn {
		return []insn{{Op: op, Dst: dst, Src: src, Imm: imm, Off: 1}, {Op: bpfobj.OpExit}, {Op: bpfobj.OpExit}}
	}
	eq := asm.JEq.Op(asm.ImmSource)
	unknown := insn{Op: bpfobj.OpCall, Imm: int64(asm.FnGetPrandomU32)}
	for name, c := range map[string]struct {
		feature Features
		without Level
		code    []insn
	}{
		"spilled constant": {Constants, Certain, slices.Concat([]insn{one}, spilled, never(eq, 2, 0, 0))},
		"spilled zero":     {Constants, Imprecise, slices.Concat([]insn{{Op: asm.Mov.Op(asm.ImmSource), Dst: 1}}, spilled, never(eq, 2, 0, 1))},
		"register":         {Constants, Certain, slices.Concat([]insn{one}, never(asm.JGT.Op(asm.RegSource), 1, 1, 0))},
		"order":            {Constants, Imprecise, slices.Concat([]insn{one}, never(asm.JGT.Op(asm.ImmSource), 1, 0, 7))},
		"bit":              {Constants, Certain, slices.Concat([]insn{one}, never(asm.JSet.Op(asm.ImmSource), 1, 0, 2))},
		"32-bit move": {Constants, Imprecise, slices.Concat([]insn{
			one, {Op: asm.Mov.Op32(asm.RegSource), Dst: 2, Src: 1},
		}, never(eq, 2, 0, 0))},
		"pointer": {NonNull, Certain, slices.Concat([]insn{
			{Op: bpfobj.OpLdImm64, Dst: 1, Ref: bpfobj.RefTo(bpfobj.RefData, 0)}, {},
		}, never(eq, 1, 0, 0))},
		"xor": {Partly, Certain, slices.Concat([]insn{one, {Op: asm.Xor.Op(asm.ImmSource), Dst: 1, Imm: 1}}, never(eq, 1, 0, 1))},
		"spilled part": {Partly, Certain, slices.Concat([]insn{
			unknown, {Op: asm.And.Op(asm.ImmSource), Imm: 7}, {Op: asm.Mov.Op(asm.RegSource), Dst: 1},
		}, spilled, never(asm.JSet.Op(asm.ImmSource), 2, 0, 8))},
		"setting": {Rodata, Certain, slices.Concat([]insn{
			{Op: bpfobj.OpLdImm64, Dst: 1, Ref: bpfobj.RefTo(bpfobj.RefExtern, 0)}, {}, {Op: fill, Dst: 2, Src: 1},
		}, never(eq, 2, 0, 1))},
		"typed symbol": {NonNull, Certain, slices.Concat([]insn{
			{Op: bpfobj.OpLdImm64, Dst: 1, Ref: bpfobj.RefTo(bpfobj.RefExtern, 1)}, {},
		}, never(eq, 1, 0, 0))},
	} {
		o := &bpfobj.Code{
			Order: binary.LittleEndian, Data: []bpfobj.Data{{Bytes: make([]byte, 64)}},
			Externs: []bpfobj.Extern{{Name: "CONFIG_NO", Kind: bpfobj.ExternKconfig, Size: 8}, {Name: "typed", Kind: bpfobj.ExternKsym, Type: 1}},
			Funcs:   []bpfobj.Function{{Insns: c.code}},
		}
		for _, has := range []bool{false, true} {
			in := allFeatures()
			in.Kconfig = func(*bpfobj.Extern) Number { return Number{} }
			in.Ksym = func(*bpfobj.Extern) Number { return Number{V: 1} }
			want := Unreached
			if !has {
				in.Features &^= c.feature
				want = c.without
			}
			r := Explore(t.Context(), o, &bpfobj.Program{Funcs: []int{0}}, in)
			if got := r.Reached(bpfobj.Site{Insn: len(c.code) - 1}); got != want || !r.Relevant().Features.Has(c.feature) {
				t.Errorf("%s, has the feature: %t: reached %d, want %d; relevant: %+v", name, has, got, want, r.Relevant())
			}
		}
	}
}

// TestOrder compares the size of an unknown number twice. Verifiers know its bounds then, so what lies behind the second comparison may
// not be reached.
func TestOrder(t *testing.T) {
	o := &bpfobj.Code{Funcs: []bpfobj.Function{{Insns: []insn{
		{Op: bpfobj.OpCall, Imm: int64(asm.FnGetPrandomU32)},
		{Op: asm.JGT.Op(asm.ImmSource), Imm: 7, Off: 2},
		{Op: asm.JGT.Op(asm.ImmSource), Imm: 8, Off: 2},
		{Op: bpfobj.OpExit},
		{Op: bpfobj.OpExit},
		{Op: bpfobj.OpExit},
	}}}}
	r := Explore(t.Context(), o, &bpfobj.Program{Funcs: []int{0}}, allFeatures())
	for insn, want := range map[int]Level{4: Certain, 5: Imprecise} {
		if got := r.Reached(bpfobj.Site{Insn: insn}); got != want {
			t.Errorf("%d: reached %d, want %d", insn, got, want)
		}
	}
}

// TestUntypedSymbol compares the address of a symbol, which every verifier takes for a number, with 0.
func TestUntypedSymbol(t *testing.T) {
	o := &bpfobj.Code{
		Externs: []bpfobj.Extern{{Name: "vfs_read", Kind: bpfobj.ExternKsym}},
		Funcs: []bpfobj.Function{{Insns: []insn{
			{Op: bpfobj.OpLdImm64, Dst: 1, Ref: bpfobj.RefTo(bpfobj.RefExtern, 0)}, {},
			{Op: asm.JEq.Op(asm.ImmSource), Dst: 1, Off: 1},
			{Op: bpfobj.OpExit},
			{Op: bpfobj.OpExit},
		}}},
	}
	r := Explore(t.Context(), o, &bpfobj.Program{Funcs: []int{0}}, &Input{Ksym: func(*bpfobj.Extern) Number { return Number{V: 1} }})
	if got := r.Reached(bpfobj.Site{Insn: 4}); got != Unreached {
		t.Errorf("reached %d", got)
	}
}
