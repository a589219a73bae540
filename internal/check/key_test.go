// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestCodeKey wants the same findings on the code of a program wherever it has the same key. The test
// adds kernels that do not list their helpers, and an object with a helper that few kernels have.
func TestCodeKey(t *testing.T) {
	raceflag.SkipSerial(t)
	objects := []*rule.Object{rule.NewObject("helper", &bpfobj.Code{
		Funcs:    []bpfobj.Function{{Insns: []insn{{Op: bpfobj.OpCall, Imm: int64(asm.FnLoop)}, {Op: bpfobj.OpExit}}}},
		Programs: []bpfobj.Program{{Funcs: []int{0}}},
	}, noRecords(t))}
	for _, in := range testinput.Objects(t) {
		o, err := rule.Parse(t.Context(), in.Name(), in.Data)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	r := newRun(Config{Objects: objects})
	first := make(map[*bpfobj.Program]*memo[programKey, codeFindings])
	tg := new(target)
	empty := new(core.Target)
	if err := empty.Load(t.Context(), "empty", testbtf.Types(t, binary.LittleEndian, "struct s 4: a u32 0")); err != nil {
		t.Fatal(err)
	}
	same := 0
	testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
		if why := it.Load(t.Context(), &tg.Target, "k"); why != nil {
			t.Fatal(it.Name, why)
		}
		k := rule.Inspect(t.Context(), &tg.Target, r.want, it, false)
		silent := rule.Inspect(t.Context(), empty, r.want, it, false)
		loaded, err := r.loader.on(t.Context(), tg)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range loaded {
			for j := range objects[i].Programs {
				for _, k := range []*rule.Inventory{k, silent} {
					if d == nil {
						continue
					}
					e := r.program(r.pair(i, k, d, new(target), nil, nil), j)
					if first[e.pr] == nil {
						first[e.pr] = new(memo[programKey, codeFindings])
					}
					key := e.key()
					known, ok := first[e.pr].find(key, e.input)
					e.results = new(results) // all is done again
					list, all := e.code(t.Context())
					work, relevant := 0, interp.Relevant{}
					for _, x := range all {
						work += x.Work
						relevant.Add(x.Relevant())
					}
					if !ok {
						first[e.pr].add(key, relevant, e.input, codeFindings{findings: list, work: work})
						continue
					}
					same++
					if list != known.findings || work != known.work {
						t.Errorf("%s: %s: %v, elsewhere %v", it.Name, objects[i].Name(), r.found.read(list), r.found.read(known.findings))
					}
				}
			}
		}
	})
	if same == 0 {
		t.Error("no two programs have the same key")
	}
}

// noRecords is the records of an object without any.
func noRecords(t *testing.T) *core.Object {
	t.Helper()
	o, err := core.ParseObject("none", testinput.Named(t, "nobtf.bpfel.o").Data)
	if err != nil {
		t.Fatal(err)
	}
	return o
}
