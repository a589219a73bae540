// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/job/store"
)

// TestReach compares the reachable poisoned relocations on a tree with those on the same kernels in a .btfc file.
func TestReach(t *testing.T) {
	tree, err := corpus.Open(t.Context(), []string{kernels + "/debian/12/x86_64"}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a!b.btfc")
	if _, err := store.Pack(t.Context(), walk.Config{Corpus: tree, Jobs: 1}, path, nil); err != nil {
		t.Fatal(err)
	}
	packed, err := corpus.Open(t.Context(), []string{path}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var objects []*core.Object
	var programs []*check.Object
	for _, name := range []string{"biolat.bpfel.o", "broken.bpfel.o"} {
		data, err := os.ReadFile("../../../testdata/bpf/" + name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := check.Parse(t.Context(), name, data)
		if err != nil {
			t.Fatal(err)
		}
		objects, programs = append(objects, object(t, name)), append(programs, p)
	}
	var all [][]generate.Unresolved
	for _, c := range []*corpus.Corpus{tree, packed} {
		cfg := generate.Config{Objects: objects, Corpus: c, Jobs: 1}
		rep, err := generate.Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := generate.Reach(t.Context(), &cfg, programs, rep); err != nil {
			t.Fatal(err)
		}
		reached, guarded := 0, 0
		for _, u := range rep.Unresolved {
			reached += len(u.Reached)
			guarded += len(u.Guarded)
		}
		if reached == 0 || guarded == 0 {
			t.Errorf("%s: %d reached, %d guarded", c.Sources[0], reached, guarded)
		}
		all = append(all, rep.Unresolved)
	}
	if !reflect.DeepEqual(all[0], all[1]) {
		t.Error("the .btfc file gives another result")
	}
}
