// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"bytes"
	"os"
	"reflect"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestPacked compares the results of a .btfc file, whose kernels share outcomes, with those of a tree: for all objects together,
// for single objects, which need other parts.
func TestPacked(t *testing.T) {
	if !raceflag.Enabled {
		slow.Skip(t)
	}
	tree := testinput.Corpus(t)
	if raceflag.Enabled {
		tree = testinput.Few(t) // more kernels have no other goroutines
	}
	packed := testinput.Packed(t, tree)
	var all []*core.Object
	for _, o := range testinput.Objects(t) {
		all = append(all, o.Object)
	}
	sets := [][]*core.Object{all}
	each := 6
	if os.Getenv("BTFGEN_CORPUS") != "" {
		each = 40 // three times as many kernels, which are decompressed for each set
	}
	if raceflag.Enabled || !slow.Enabled() {
		each = len(all)
	}
	for i := 0; i < len(all); i += each {
		sets = append(sets, all[i:i+1])
	}
	kernels, shared := 0, 0
	for i, objects := range sets {
		cfg := generate.Config{Objects: objects, Jobs: 2}
		run := func(c *corpus.Corpus) *generate.Report {
			cfg.Corpus = c
			rep, err := generate.Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			return rep
		}
		want, got := run(tree), run(packed)
		if len(want.Kernels) != len(got.Kernels) || len(want.Skipped) != len(got.Skipped) {
			t.Fatalf("set %d: %d kernels, %d skipped; want %d, %d", i, len(got.Kernels), len(got.Skipped), len(want.Kernels), len(want.Skipped))
		}
		if !reflect.DeepEqual(got.Unresolved, want.Unresolved) {
			t.Errorf("set %d: other relocations are unresolved", i)
		}
		for j := range want.Kernels {
			a, b := &want.Kernels[j], &got.Kernels[j]
			kernels++
			if a.Key != b.Key || a.Resolved != b.Resolved || a.RawSize != b.RawSize || a.Machine != b.Machine || !bytes.Equal(a.BTF, b.BTF) {
				t.Errorf("set %d, %s: another result", i, a.Name)
			}
			if b.Shared {
				shared++
			}
		}
	}
	t.Logf("%d kernels, %d of them shared", kernels, shared)
	if os.Getenv("BTFGEN_CORPUS") != "" && shared == 0 {
		t.Error("no outcome was shared")
	}
}
