// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestEqualSignatures compares all relocations of all objects on all kernels. Those
// with the same signature must have the same outcomes.
func TestEqualSignatures(t *testing.T) {
	var objects []*core.Object
	for _, o := range testinput.Objects(t) {
		parsed, err := core.ParseObject(o.Name(), o.Data)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, parsed)
	}
	qs := core.QuestionsOf(objects...)
	all, pairs := qs.Len()
	kernels, matches := compare(t, qs)
	t.Logf("%d relocations of %d objects, %d with the signature of an earlier one, on %d kernels: %d matches", all, len(objects), pairs, kernels, matches)
	if pairs == 0 || matches == 0 {
		t.Error("nothing was compared")
	}
}

// TestSignaturesOfMutants changes one word of the types that relocations depend on. If
// the signature stays the same, the outcomes on all kernels must stay the same. It
// fails if a matcher reads something that the signature leaves out.
func TestSignaturesOfMutants(t *testing.T) {
	slow.Nightly(t)
	raceflag.SkipSerial(t)
	const mutations, seed = 10000, 1
	paths, err := filepath.Glob(testinput.Path(t, "testdata", "bpf", "*.o"))
	if err != nil {
		t.Fatal(err)
	}
	var objects [][]byte
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if o, err := core.ParseObject(p, data); err == nil && o.Empty() == nil {
			objects = append(objects, data)
		}
	}
	qs, ms, err := core.MutateQuestions(objects, mutations, seed)
	if err != nil {
		t.Fatal(err)
	}
	kernels, matches := compare(t, qs)
	t.Logf("seed %d: %d of %d mutations in %d classes: %d are not valid, %d have another signature, %d have the same; %d kernels, %d matches",
		seed, ms.Made, ms.Possible, ms.Classes, ms.Damaged, ms.Distinguished, ms.Alike, kernels, matches)
	if matches == 0 {
		t.Error("nothing was compared")
	}
}

// compare compares the outcomes of the questions on every kernel.
func compare(t *testing.T, qs *core.Questions) (kernels, matches int) {
	t.Helper()
	const most = 20 // differences to print
	printed := 0
	testinput.Each(t, testinput.Varied(t), func(it *corpus.Kernel) {
		k, err := testinput.NewKernel(it.Name, it.BTF, it.Modules...)
		if err != nil {
			t.Fatal(err)
		}
		differences, n := qs.Compare(k)
		kernels++
		matches += n
		for _, d := range differences {
			if printed++; printed <= most {
				t.Errorf("%s: %s", it.Name, d)
			}
		}
	})
	if printed > most {
		t.Errorf("%d differences in all", printed)
	}
	return kernels, matches
}
