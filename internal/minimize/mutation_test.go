// SPDX-License-Identifier: Apache-2.0

package minimize

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/verify"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// judged is the judges' result for a mutant.
type judged struct {
	diffs []verify.Difference // decisions that changed
	err   error               // a loader cannot read it
}

func (j *judged) changed() bool { return j.err != nil || len(j.diffs) > 0 }

// ask compares libbpf's log and cilium/ebpf's result. The log's choice among equal
// candidates is not a decision, nor are the flavors of the matches.
func (p *pipeline) ask(out []byte) (j judged) {
	k, err := p.judge.Compare(p.Context(), out)
	if err != nil {
		return judged{err: err}
	}
	for _, d := range k.Differences {
		a, _, _ := strings.Cut(d.Full, " at ")
		b, _, _ := strings.Cut(d.Minimized, " at ")
		if d.Loader == verify.Cilium || d.What == verify.WhatDecision && a != b {
			j.diffs = append(j.diffs, d)
		}
	}
	return j
}

// mutate makes mutants and reports those that change a decision although the proof
// accepts them.
func (p *pipeline) mutate(l []mutation, t tally) {
	p.Helper()
	for i := range l {
		mu := &l[i]
		out := p.run(mu)
		n := t.of(mu.rule)
		n.made++
		if bytes.Equal(out, p.whole) {
			n.same++
			continue
		}
		if _, err := btf.New(out, nil); err != nil {
			p.Fatalf("%s: %s: %v", p.kernel.Name(), mu.rule, err) // no mutant, but a mistake in the test
		}
		proof, j := p.prove(out), p.ask(out)
		if proof != nil {
			n.refused++
		}
		switch {
		case proof == nil && j.err != nil:
			p.Errorf("%s: %s: the proof accepts what a loader cannot read: %v", p.kernel.Name(), mu.rule, j.err)
		case proof == nil && j.changed():
			p.Errorf("%s: %s: the proof accepts a change: %+v", p.kernel.Name(), mu.rule, j.diffs[0])
		case j.changed():
			n.changed++
		case proof != nil:
			n.beyond++
		}
	}
}

// TestMutants breaks the minimizer in one place at a time, on real kernels. A
// judge that does not use columns says whether a decision changed. The proof has to
// refuse every such mutant.
func TestMutants(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	t.Parallel()
	var objects []verify.Object
	for _, o := range testinput.Objects(t) {
		objects = append(objects, verify.Object(o))
	}
	each, step := slow.Some(2), 1 // mutants of a rule on a kernel
	if os.Getenv("BTFGEN_CORPUS") != "" {
		each, step = 1, 6 // of more kernels; each takes twenty seconds
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	sum := make(tally)
	n := 0
	testinput.Each(t, testinput.Few(t), func(it *corpus.Kernel) {
		if n++; n%step != 0 {
			return
		}
		if p := newPipeline(t, it.Name, it.BTF, objects); p != nil {
			p.mutate(append(without(), sample(p.mutants(), each, rnd)...), sum)
		}
	})
	sum.log(t)
	if sum.total().changed == 0 {
		t.Error("no mutant changed a decision")
	}
}

// ruleCases has for each rule a kernel on which leaving it out does harm.
var ruleCases = []struct {
	rule                string
	local, asks, kernel string
	larger              bool // the output has more types, and no decision changes
	drop                func(*marks)
}{
	{
		rule:  "without needEnd",
		local: "struct foo 16: a int[4] 0", asks: "field_exists struct foo.a\n byte_off struct foo.a[2]",
		kernel: "struct foo 4: a int[0] 0, b int 0",
	},
	{
		rule:  "without needAnonymous",
		local: "struct foo 4: # #in 0\n struct #in 4: a int 0", asks: "type_matches struct foo",
		kernel: "struct foo 8: # #one 0, # #two 4\n struct #one 4: a int 0\n struct #two 4: b int 0",
	},
	{
		rule:  "without unify",
		local: "struct foo 8: x in 0\n struct bar 8: y in 0\n struct in 8: a int 0, b int 4", asks: "byte_off struct foo.x.a\n byte_off struct bar.y.b",
		kernel: "struct foo 8: x in 0\n struct bar 8: y in#2 0\n struct in 8: a int 0, b int 4\n struct in#2 8: a int 0, b int 4",
		larger: true,
	},
	{
		rule:  "without integer names",
		local: "struct foo 4: a int 0", asks: "byte_off struct foo.a\n type_matches struct foo",
		kernel: "struct foo 4: a s32 0\n int s32 4 signed",
	},
	{
		rule:  "without pointer size",
		local: "struct foo 8: a *void 0", asks: "byte_sz struct foo.a",
		kernel: "struct foo 4: a *void 0\n int long 4 signed",
	},
	{
		rule:  "without name",
		local: "int size_t 8", asks: "type_size size_t",
		kernel: "int size_t 8",
	},
	{
		rule:  "without copies",
		local: "struct foo 4: a int 0", asks: "target_type_id struct foo",
		kernel: "struct foo 4: a int 0\n struct foo#2 4: a int 0",
	},
	{
		rule:  "without needs: index",
		local: "typedef foo int[4]", asks: "type_exists foo",
		kernel: "typedef foo int[4]",
	},
	{
		rule:  "without needs: pointee",
		local: "typedef foo *int", asks: "type_exists foo",
		kernel: "typedef foo *int",
	},
	{
		rule:  "without needs: member",
		local: "struct foo 4: a int 0", asks: "byte_off struct foo.a",
		kernel: "struct foo 4: a int 0",
	},
	{
		rule:  "without needs: enumerator",
		local: "enum foo 4: X 1", asks: "enumval_exists enum foo::X",
		kernel: "enum foo 4: X 1",
	},
	{
		rule:  "without needs: count of members",
		local: "struct foo 8: a int 0, a___2 int 4", asks: "type_matches struct foo",
		kernel: "struct foo 8: a int 0, b int 4",
		drop:   dropSecond,
	},
	{
		rule:  "without needs: count of enumerators",
		local: "enum foo 4: X 0, X___2 1", asks: "type_matches enum foo",
		kernel: "enum foo 4: X 0, Y 1",
		drop:   dropSecond,
	},
}

// dropSecond takes back what was needed for its number alone.
func dropSecond(m *marks) {
	for _, n := range m.nodes {
		n.idx = slices.DeleteFunc(n.idx, func(i uint32) bool { return i == 1 })
	}
}

// smallPipeline is for an object and a kernel in the notation of testbtf.
func smallPipeline(t *testing.T, local, asks, kernel string) *pipeline {
	t.Helper()
	o, data := smallObject(t, local, asks)
	return newPipeline(t, "k", testbtf.Types(t, binary.LittleEndian, kernel), []verify.Object{{Object: o, Data: data}})
}

// smallObject is an object in the notation of testbtf whose instructions hold
// the local values.
func smallObject(t *testing.T, local, asks string) (*core.Object, []byte) {
	t.Helper()
	parse := func(operands ...uint64) (*core.Object, []byte) {
		data := testbtf.Object(t, binary.LittleEndian, local, asks, operands...)
		o, err := core.ParseObject("o", data)
		if err != nil {
			t.Fatal(err)
		}
		return o, data
	}
	o, _ := parse()
	own, err := testinput.NewKernel("own", testbtf.Types(t, binary.LittleEndian, local))
	if err != nil {
		t.Fatal(err)
	}
	log, err := core.NewSet(o).Run(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	var operands []uint64
	for i := range log.Entries {
		operands = append(operands, log.Entries[i].Old)
	}
	return parse(operands...)
}

// TestRules leaves out each rule where that must be seen, and makes all other
// mutants on the same small kernels.
func TestRules(t *testing.T) {
	rules := make(map[string]mutation)
	for _, mu := range without() {
		rules[mu.rule] = mu
	}
	sum := make(tally)
	for _, c := range ruleCases {
		t.Run(c.rule, func(t *testing.T) {
			mu, ok := rules[c.rule]
			if delete(rules, c.rule); !ok {
				mu = mutation{rule: c.rule, marks: c.drop}
			}
			p := smallPipeline(t, c.local, c.asks, c.kernel)
			out := p.run(&mu)
			proof, j := p.prove(out), p.ask(out)
			switch {
			case c.larger && (proof != nil || j.changed() || len(out) <= len(p.whole)):
				t.Errorf("%d bytes with the rule, %d without; proof %v, judges %+v", len(p.whole), len(out), proof, j)
			case c.larger:
			case !j.changed():
				t.Error("no decision changes without it")
			case proof == nil:
				t.Errorf("the proof accepts %+v", j)
			}
			p.mutate(p.mutants(), sum)
		})
	}
	sum.log(t)
	for r := range rules {
		t.Errorf("no case for %s", r)
	}
}

// TestProofError has a Minimizer that goes wrong say where and how.
func TestProofError(t *testing.T) {
	p := smallPipeline(t, "struct foo 8: a u32 0, b u32 4", "byte_off struct foo.a\n byte_off struct foo.b", "struct foo 8: a u32 0, b u32 4")
	out := p.run(&mutation{after: func(m *marks) {
		for _, n := range m.nodes {
			n.idx = slices.DeleteFunc(n.idx, func(i uint32) bool { return i == 1 })
		}
	}})
	err := p.prove(out)
	var e *relo.ProofError
	if !errors.Is(err, ErrProof) || !errors.As(err, &e) {
		t.Fatalf("error %v", err)
	}
	want := relo.ProofError{
		Kernel: "k", Object: "o", Relocation: "byte_off struct foo.b", Candidate: "struct foo",
		Full: "libbpf: bit 32, byte_off 4, int of 4 bytes; cilium/ebpf: byte_off 4; aya matches", Minimized: "no match",
	}
	if *e != want {
		t.Errorf("have %#v\nwant %#v", *e, want)
	}
	const text = "k: minimized BTF decides differently: o: byte_off struct foo.b: libbpf: bit 32, byte_off 4, int of 4 bytes; cilium/ebpf: byte_off 4; aya matches, minimized no match"
	if err.Error() != text {
		t.Errorf("have %s\nwant %s", err, text)
	}
}
