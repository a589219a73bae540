// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// keptSummaries finds summaries by everything that they may depend on.
type keptSummaries struct {
	known  map[Entry][]*Summary
	by     map[*Summary]string
	values []uint64
	Features
	found, missed int
}

// relevant is the part of the input that is relevant to a summary.
func (k *keptSummaries) relevant(r Relevant) string {
	s := fmt.Sprint(k.Features & r.Features)
	for _, n := range r.Records {
		s += fmt.Sprint(" ", k.values[n])
	}
	return s
}

func (k *keptSummaries) Find(from Entry) *Summary {
	for _, sum := range k.known[from] {
		if k.by[sum] == k.relevant(sum.Relevant()) {
			k.found++
			return sum
		}
	}
	k.missed++
	return nil
}

func (k *keptSummaries) Add(from Entry, sum *Summary) {
	k.known[from] = append(k.known[from], sum)
	k.by[sum] = k.relevant(sum.Relevant())
}

// TestSummaries explores random programs again with other values of records and other features. The result must be the same
// with and without summaries of earlier explorations.
func TestSummaries(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	found, missed, differ := 0, 0, 0
	programs := slow.Some(250)
	for range programs {
		o, pr := new(bpfobj.Code), new(bpfobj.Program)
		records := int32(0)
		for f, code := range (&source{Rand: rnd}).funcs() {
			for i := range code {
				if in := &code[i]; in.Op.Class().IsALU() && !isRegister(in) && in.Op.ALUOp() != asm.Neg && rnd.IntN(3) == 0 {
					records++
					in.Record = records
				}
			}
			o.Funcs = append(o.Funcs, bpfobj.Function{Insns: code, Global: f > 0 && rnd.IntN(4) == 0})
			pr.Funcs = append(pr.Funcs, f)
		}
		kept := &keptSummaries{known: make(map[Entry][]*Summary), by: make(map[*Summary]string), values: make([]uint64, records)}
		var before string
		for range 6 {
			for i := range kept.values {
				if rnd.IntN(4) == 0 {
					kept.values[i] = uint64(rnd.IntN(4))
				}
			}
			kept.Features = Features(rnd.Uint32())
			in := &Input{Features: kept.Features, Record: func(r int) (uint64, bool) { return kept.values[r], true }}
			want := outcome(Explore(t.Context(), o, pr, in))
			in.Summaries = kept
			if got := outcome(Explore(t.Context(), o, pr, in)); got != want {
				t.Fatalf("with what is known already:\n%s\nwithout:\n%s", got, want)
			}
			if want != before {
				differ++
			}
			before = want
		}
		found += kept.found
		missed += kept.missed
	}
	t.Logf("%d summaries found, %d not, %d outcomes that differ from the one before", found, missed, differ)
	if found < 2*programs || missed < 2*programs || differ < 4*programs/5 {
		t.Error("too few of one kind")
	}
}

// TestSummaryReturns has a function return the value of a record, which matters though the function does not use it.
func TestSummaryReturns(t *testing.T) {
	o := &bpfobj.Code{Funcs: []bpfobj.Function{
		{Insns: []insn{call(1), {Op: asm.JEq.Op(asm.ImmSource), Dst: 0, Imm: 5, Off: 1}, {Op: bpfobj.OpExit}, {Op: bpfobj.OpExit}}},
		{Insns: []insn{{Op: asm.Mov.Op(asm.ImmSource), Dst: 0, Record: 1}, {Op: bpfobj.OpExit}}},
	}}
	kept := &keptSummaries{known: make(map[Entry][]*Summary), by: make(map[*Summary]string), values: make([]uint64, 1)}
	in := &Input{Record: func(r int) (uint64, bool) { return kept.values[r], true }, Summaries: kept}
	for v, want := range []Level{4: Unreached, 5: Certain} {
		kept.values[0] = uint64(v)
		if got := Explore(t.Context(), o, &bpfobj.Program{Funcs: []int{0, 1}}, in).Reached(bpfobj.Site{Insn: 3}); got != want {
			t.Errorf("%d: level %d, want %d", v, got, want)
		}
	}
}

// outcome is everything in a result.
func outcome(r *Result) string {
	s := fmt.Sprint(r.GaveUp, r.Work, r.Odd, r.Relevant())
	for fn := range r.object.Funcs {
		for i := range r.object.Funcs[fn].Insns {
			at := bpfobj.Site{Fn: fn, Insn: i}
			g, ok := r.Guard(at)
			s += fmt.Sprint(" ", r.Reached(at), r.With(at, Moved), r.With(at, HalfSize), r.With(at, ZeroSize), ok, g.Branch)
			if g.Origin != nil {
				s += fmt.Sprint(*g.Origin)
			}
		}
	}
	return s
}

// TestSummaryOfSharedFunction checks that calls with equal arguments share a summary, and calls with other constants or a
// pointer to the stack do not.
func TestSummaryOfSharedFunction(t *testing.T) {
	set := func(r asm.Register, v int64) insn { return insn{Op: asm.Mov.Op(asm.ImmSource), Dst: r, Imm: v} }
	callee := []insn{
		{Op: asm.JEq.Op(asm.ImmSource), Dst: 1, Imm: 5, Off: 1},
		{Op: bpfobj.OpExit},
		{Op: bpfobj.OpExit},
	}
	for name, tt := range map[string]struct {
		code      []insn
		summaries int
		five      Level // level of the last instruction
	}{
		"alike":   {[]insn{set(1, 4), call(1), set(1, 4), call(1), {Op: bpfobj.OpExit}}, 2, Unreached},
		"apart":   {[]insn{set(1, 4), call(1), set(1, 5), call(1), {Op: bpfobj.OpExit}}, 3, Certain},
		"pointer": {[]insn{{Op: asm.Mov.Op(asm.RegSource), Dst: 1, Src: asm.RFP}, call(1), {Op: bpfobj.OpExit}}, 1, Certain},
	} {
		r := run(new(bpfobj.Code), tt.code, callee)
		if got := r.Reached(bpfobj.Site{Fn: 1, Insn: 2}); len(r.parts) != tt.summaries || got != tt.five {
			t.Errorf("%s: %d summaries, level %d", name, len(r.parts), got)
		}
	}
	r := run(new(bpfobj.Code), []insn{call(1), {Op: bpfobj.OpExit}}, callee)
	again := run(new(bpfobj.Code), []insn{call(1), {Op: bpfobj.OpExit}}, callee)
	if !reflect.DeepEqual(r.reached(1), again.reached(1)) {
		t.Errorf("%v and %v", r.reached(1), again.reached(1))
	}
}
