// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

// searchBack finds a guard by its definition, breadth first: the predecessors of an instruction, their predecessors,
// and so on, until one is reached.
func (r *Result) searchBack(at bpfobj.Site) (bpfobj.Site, bool) {
	todo, done := []bpfobj.Site{at}, map[bpfobj.Site]bool{at: true}
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		for _, p := range r.predecessors(s) {
			if r.Reached(p) != Unreached {
				return p, true
			}
			if !done[p] {
				done[p] = true
				todo = append(todo, p)
			}
		}
	}
	return bpfobj.Site{}, false
}

// predecessors returns the instructions that refer to the function that begins at s, then those that continue at s, in
// order.
func (r *Result) predecessors(s bpfobj.Site) (calls []bpfobj.Site) {
	var flow []bpfobj.Site
	for _, fn := range r.pr.Funcs {
		for i, in := range r.object.Funcs[fn].Insns {
			at := bpfobj.Site{Fn: fn, Insn: i}
			if in.Ref.Kind() == bpfobj.RefFunc && s == (bpfobj.Site{Fn: in.Ref.N()}) {
				calls = append(calls, at)
			}
			slots, jumps := in.Jump()
			if fn == s.Fn && (in.FallsThrough() && i+in.Slots() == s.Insn || jumps && i+1+slots == s.Insn) {
				flow = append(flow, at)
			}
		}
	}
	return append(calls, flow...)
}

// TestGuard compares the guards of random programs with their definition.
func TestGuard(t *testing.T) {
	raceflag.SkipSerial(t)
	rnd := rand.New(rand.NewPCG(1, 1))
	guarded, none := 0, 0
	for range 2000 {
		funcs := make([][]insn, 1+rnd.IntN(4))
		for f := range funcs {
			n := 2 + rnd.IntN(12)
			for i := range n {
				to := int16(rnd.IntN(n) - i - 1)
				ops := []insn{
					{Op: 0xb7, Dst: 6}, {Op: 0x15, Dst: 6, Off: to}, {Op: 0x55, Dst: 6, Off: to}, {Op: 0x55, Dst: 6, Off: to},
					{Op: bpfobj.OpJa, Off: to}, {Op: bpfobj.OpGotol, Imm: int64(to)}, {Op: bpfobj.OpExit}, {Op: bpfobj.OpLdImm64, Dst: 1}, call(rnd.IntN(len(funcs))),
				}
				funcs[f] = append(funcs[f], ops[rnd.IntN(len(ops))])
			}
		}
		o := new(bpfobj.Code)
		r := run(o, funcs...)
		for fn := range o.Funcs {
			for i := range o.Funcs[fn].Insns {
				at := bpfobj.Site{Fn: fn, Insn: i}
				if r.Reached(at) != Unreached {
					continue
				}
				want, ok := r.searchBack(at)
				got, found := r.Guard(at)
				if found != ok || got.Branch != want {
					t.Fatalf("%+v: %+v, %t, want %+v, %t: %+v", at, got.Branch, found, want, ok, funcs)
				}
				if ok {
					guarded++
				} else {
					none++
				}
			}
		}
	}
	if guarded == 0 || none == 0 {
		t.Errorf("%d guarded, %d with nothing that leads there", guarded, none)
	}
}

// TestFacts checks the branch that a CO-RE record decides, and its record.
func TestFacts(t *testing.T) {
	r := run(new(bpfobj.Code), []insn{
		{Op: 0xb7, Dst: 1, Record: 3},
		{Op: 0x15, Dst: 1, Off: 1},
		{Op: 0xb7, Dst: 1, Record: 1},
		{Op: bpfobj.OpExit},
	})
	g, ok := r.Guard(bpfobj.Site{Insn: 2})
	if !ok || g.Branch.Insn != 1 || g.Origin == nil || *g.Origin != (Origin{Record: 2}) {
		t.Errorf("%+v, %t", g, ok)
	}
	if _, ok := r.Guard(bpfobj.Site{Insn: 3}); ok {
		t.Error("a guard of what is reached")
	}
	if _, ok := r.Guard(bpfobj.Site{Insn: 4}); ok || r.Reached(bpfobj.Site{Insn: 4}) != Unreached {
		t.Error("a guard of what is not there")
	}
}

// BenchmarkGuard finds the guards of all instructions of a large unreached block.
func BenchmarkGuard(b *testing.B) {
	const n = 16_000
	code := slices.Concat(
		[]insn{{Op: 0xb7, Dst: 6}, {Op: 0x15, Dst: 6, Off: 1}, {Op: bpfobj.OpGotol, Imm: 1}, {Op: bpfobj.OpGotol, Imm: n}},
		slices.Repeat([]insn{{Op: 0x07, Dst: 6}}, n), []insn{{Op: bpfobj.OpExit}})
	for b.Loop() {
		r := run(new(bpfobj.Code), code)
		for i := range n {
			if _, ok := r.Guard(bpfobj.Site{Insn: 4 + i}); !ok {
				b.Fatal("no guard")
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/instruction")
}
