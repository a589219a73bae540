// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// mapSubjects checks a program with maps of these types on kernels of testdata/vmlinux. It returns the
// report's names of the types that some kernel lacks.
func mapSubjects(t *testing.T, types []uint32, kernels ...string) []string {
	t.Helper()
	prog := &bpfobj.Code{
		Funcs:    []bpfobj.Function{{Insns: []insn{{Op: 0xb7}, {Op: bpfobj.OpExit}}}},
		Programs: []bpfobj.Program{{Funcs: []int{0}}},
	}
	for _, m := range types {
		prog.Maps = append(prog.Maps, bpfobj.Map{Name: "m", Type: m})
	}
	var sources []string
	for _, k := range kernels {
		sources = append(sources, filepath.Join(testinput.Vmlinux(t), "debian", k))
	}
	corp, err := corpus.Open(context.Background(), sources, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(context.Background(), Config{Objects: []*rule.Object{rule.NewObject("maps", prog, noRecords(t))}, Corpus: corp, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	subjects := make(map[string]bool)
	for _, f := range rep.Programs[0].Findings {
		if rule.FamilyOf(f.Code) == rule.FamilyMapType {
			subjects[f.Subject] = true
		}
	}
	return slices.Sorted(maps.Keys(subjects))
}

// TestSuggestLoaderMap wants --loader-map suggested for a map that only some kernels have, and none for one that no kernel lacks.
func TestSuggestLoaderMap(t *testing.T) {
	prog := &bpfobj.Code{
		Funcs:    []bpfobj.Function{{Insns: []insn{{Op: 0xb7}, {Op: bpfobj.OpExit}}}},
		Programs: []bpfobj.Program{{Funcs: []int{0}, Section: "socket", Attach: bpfobj.SectionOf("socket"), AutoLoad: true}},
		Maps:     []bpfobj.Map{{Name: "arena_buf", Type: 33, MaxEntries: 1}, {Name: "counts", Type: 1, MaxEntries: 1}},
	}
	dir := filepath.Join(testinput.Vmlinux(t), "debian")
	corp, err := corpus.Open(t.Context(), []string{filepath.Join(dir, "11/x86_64"), filepath.Join(dir, "13/x86_64")}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(t.Context(), Config{Objects: []*rule.Object{rule.NewObject("dir/tool.o", prog, noRecords(t))}, Corpus: corp, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	o := &rep.Objects[0]
	if o.Suggestion == nil || !slices.Equal(o.Suggestion.Options, []verdict.Option{{Name: "loader-map", Value: "tool.o:arena_buf"}}) {
		t.Fatalf("%+v", o.Suggestion)
	}
	if now, then := o.Sum(), o.Suggestion.Row.Sum(); !then.AllWork() || now.AllWork() {
		t.Errorf("%+v, then %+v", now, then)
	}
}

// TestMapTypeNames holds that the types of maps have their names in C.
func TestMapTypeNames(t *testing.T) {
	const arena, cgrp = "BPF_MAP_TYPE_ARENA", "BPF_MAP_TYPE_CGRP_STORAGE"
	types := []uint32{1, 19, 25, 27, 32, 33, 99, 1 << 28}
	for _, tt := range []struct {
		kernels []string
		want    []string
	}{
		{[]string{"11"}, []string{arena, cgrp, "map type 268435456", "map type 99"}},
		{[]string{"11", "13/x86_64"}, []string{arena, cgrp, "map type 268435456", "map type 99"}},
		{[]string{"13/x86_64"}, []string{"map type 268435456", "map type 99"}},
	} {
		if got := mapSubjects(t, types, tt.kernels...); !slices.Equal(got, tt.want) {
			t.Errorf("on %v: %q, want %q", tt.kernels, got, tt.want)
		}
	}
}
