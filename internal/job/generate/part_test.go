// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
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

// TestPackedModules compares the results for parts of kernels and their modules with those for the whole: of types that only modules have,
// that differ from module to module, and that refer to the kernel's; with all modules, some and none.
func TestPackedModules(t *testing.T) {
	le := binary.LittleEndian
	const vmlinux = "struct list 16: next *list 0, prev *list 8\nstruct task 64: list list 8, pid u32 24, mod *mod 32\nfwd mod struct\n"
	dir := t.TempDir()
	w, err := btfc.NewWriter(nil, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	write := func(release string, modules ...string) {
		base := testbtf.Types(t, le, vmlinux)
		var all []btfc.Module
		for i, text := range modules {
			all = append(all, btfc.Module{Name: fmt.Sprintf("m%d", i), BTF: testbtf.Module(t, le, vmlinux, text)})
		}
		testinput.Add(t, w, kernel.Key{ID: "d", VersionID: "1", Arch: "x86_64", Release: release}, base, all)
	}
	write("6.1", "struct mod 32: list list 0, pid u32 16", "struct other 8: a u32 0")
	write("6.2", "struct mod 32: pid u32 4, list list 16", "struct mod 32: list list 0, pid u32 16, a u64 24", "struct only 16: list *list 0, m *mod 8")
	write("6.3", "struct other 8: a u32 0")
	write("6.4", "struct mod 32: list list 0, pid u32 16", "struct unlike 16: a u64 8")
	path := filepath.Join(dir, "x.btfc")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteTo(out); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	var objects []*core.Object
	for i, asks := range []string{
		"byte_off struct task.list.next\nbyte_off struct mod.list\nbyte_off struct mod.pid", "type_exists struct only\ntype_size struct mod", "type_matches struct mod\ntype_matches struct only",
	} {
		const types = "struct list 16: next *list 0, prev *list 8\nstruct task 24: list list 8\nstruct mod 24: list list 0, pid u32 16\nstruct only 16: list *list 0, m *mod 8"
		o, err := core.ParseObject(fmt.Sprintf("o%d", i), testbtf.Object(t, le, types, asks))
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	for _, names := range []string{"all", "m0", "none"} {
		modules, err := selection.ParseModules(names)
		if err != nil {
			t.Fatal(err)
		}
		run := func(parts bool, objects ...*core.Object) *generate.Report {
			c, err := corpus.Open(t.Context(), []string{path}, corpus.Options{Modules: modules})
			if err != nil {
				t.Fatal(err)
			}
			cfg := generate.Config{Objects: objects, Corpus: c, Jobs: 1}
			if !parts { // as with patterns, even if no type matches
				if cfg.Options.Keep, err = core.ParseKeep("struct:no_such_type"); err != nil {
					t.Fatal(err)
				}
			}
			rep, err := generate.Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			return rep
		}
		for i := range objects {
			want, got := run(false, objects[i]), run(true, objects[i])
			if len(want.Kernels) != 4 || len(got.Kernels) != 4 || !reflect.DeepEqual(got.Unresolved, want.Unresolved) {
				t.Fatalf("modules %s, object %d: %d kernels, want %d; unresolved %v, want %v", names, i, len(got.Kernels), len(want.Kernels), got.Unresolved, want.Unresolved)
			}
			for j, a := range want.Kernels {
				b := got.Kernels[j]
				if a.Resolved != b.Resolved || a.RawSize != b.RawSize || !bytes.Equal(a.BTF, b.BTF) {
					t.Errorf("modules %s, object %d, %s: %d resolved in %d bytes, %d bytes; want %d, %d, %d", names, i, a.Name, b.Resolved, len(b.BTF), b.RawSize, a.Resolved, len(a.BTF), a.RawSize)
				}
				// Of the first two relocations, 6.1 and 6.4 have the same types.
				if shared := a.Key.Release == "6.4"; names == "all" && i == 0 && b.Shared != shared {
					t.Errorf("%s: shared: %v", b.Name, b.Shared)
				}
			}
		}
	}
}
