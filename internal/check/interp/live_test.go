// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// TestPrecise explores random programs both ways: the precise exploration reaches what the quick one is certain to
// reach, and nothing that the quick one does not reach.
func TestPrecise(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	compared, surer := 0, 0
	for range slow.Some(4_000) {
		funcs := (&source{Rand: rnd}).funcs()
		quick, precise := run(new(bpfobj.Code), funcs...), runPrecise(funcs...)
		if quick.GaveUp || quick.Odd != NothingOdd || precise.GaveUp || precise.Odd != NothingOdd {
			continue
		}
		for f := range funcs {
			for i := range funcs[f] {
				at := bpfobj.Site{Fn: f, Insn: i}
				a, b := quick.Reached(at), precise.Reached(at)
				if a == Unreached && b != Unreached || b == Unreached && a != Unreached && a != Imprecise {
					t.Fatalf("%+v: level %d, precisely %d\n%+v", at, a, b, funcs)
				}
				compared++
				if a == Imprecise && b != Imprecise {
					surer++
				}
			}
		}
	}
	t.Logf("%d instructions; the precise exploration is surer of %d", compared, surer)
	if compared < 1_000 {
		t.Error("too few instructions")
	}
}

func runPrecise(funcs ...[]insn) *Result {
	o, pr := new(bpfobj.Code), new(bpfobj.Program)
	for i, code := range funcs {
		o.Funcs, pr.Funcs = append(o.Funcs, bpfobj.Function{Insns: code}), append(pr.Funcs, i)
	}
	in := *allFeatures()
	in.Precise = true
	return Explore(context.Background(), o, pr, &in)
}

// TestLoop reaches an instruction after a loop that counts to a million.
func TestLoop(t *testing.T) {
	code := []insn{
		{Op: asm.Mov.Op(asm.ImmSource), Dst: 6},
		{Op: asm.Add.Op(asm.ImmSource), Dst: 6, Imm: 1},
		{Op: asm.JLT.Op(asm.ImmSource), Dst: 6, Imm: 1_000_000, Off: -2},
		{Op: asm.Mov.Op(asm.ImmSource), Dst: 0},
		{Op: bpfobj.OpExit},
	}
	r := run(new(bpfobj.Code), code)
	if l := r.Reached(bpfobj.Site{Insn: 3}); l != Imprecise || r.GaveUp || r.Work > 1_000 {
		t.Errorf("level %d, gave up: %t, %d units of work", l, r.GaveUp, r.Work)
	}
}

// TestDead has paths that differ only in dead registers and slots.
func TestDead(t *testing.T) {
	const n = 40
	var code []insn
	for i := range int64(n) {
		code = append(code,
			insn{Op: asm.Mov.Op(asm.ImmSource), Dst: 7, Imm: i},
			insn{Op: asm.JEq.Op(asm.RegSource), Dst: 1, Src: 6, Off: 2},
			insn{Op: asm.Mov.Op(asm.ImmSource), Dst: 8, Imm: i},
			insn{Op: asm.StoreMemOp(asm.DWord), Dst: asm.RFP, Src: 7, Off: int16(-8 - 8*(i%4))},
		)
	}
	code = append(code, insn{Op: asm.Mov.Op(asm.ImmSource), Dst: 0}, insn{Op: bpfobj.OpExit})
	r := run(new(bpfobj.Code), code)
	if l := r.Reached(bpfobj.Site{Insn: len(code) - 1}); l != Certain || r.Work > 50*n {
		t.Errorf("level %d, %d units of work", l, r.Work)
	}
}

func TestTaken(t *testing.T) {
	mov := func(dst asm.Register) insn { return insn{Op: asm.Mov.Op(asm.RegSource), Dst: dst, Src: asm.RFP} }
	add := func(dst asm.Register, n int64) insn {
		return insn{Op: asm.Add.Op(asm.ImmSource), Dst: dst, Imm: n}
	}
	const all = ^uint64(0)
	for name, test := range map[string]struct {
		code []insn
		want uint64
	}{
		"nothing":         {[]insn{{Op: asm.LoadMemOp(asm.DWord), Src: asm.RFP, Off: -8}}, 0},
		"last two words":  {[]insn{mov(1), add(1, -16), mov(2), add(2, -8)}, 3 << 62},
		"part of a word":  {[]insn{mov(1), add(1, -12)}, 3 << 62},
		"no offset":       {[]insn{mov(1)}, all},
		"other register":  {[]insn{mov(1), add(2, -8)}, all},
		"below the stack": {[]insn{mov(1), add(1, -600)}, all},
		"stored":          {[]insn{{Op: asm.StoreMemOp(asm.DWord), Dst: 1, Src: asm.RFP}}, all},
		"added":           {[]insn{{Op: asm.Add.Op(asm.RegSource), Dst: 1, Src: asm.RFP}}, all},
	} {
		if got := taken(test.code); got != test.want {
			t.Errorf("%s: %#x, want %#x", name, got, test.want)
		}
	}
}
