// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// mapSubjects checks a program with maps of these types on kernels of
// testdata/vmlinux, and returns what the report calls those that one lacks.
func mapSubjects(t *testing.T, types []uint32, kernels ...string) []string {
	t.Helper()
	prog := &bpfobj.Object{
		Funcs:    []bpfobj.Function{{Insns: []insn{{Op: 0xb7}, {Op: bpfobj.OpExit}}}},
		Programs: []bpfobj.Program{{Funcs: []int{0}}},
	}
	for _, m := range types {
		prog.Maps = append(prog.Maps, bpfobj.Map{Name: "m", Type: m})
	}
	var sources []string
	for _, k := range kernels {
		sources = append(sources, testinput.Path(t, "testdata", "vmlinux", "debian", k))
	}
	corp, err := corpus.Open(context.Background(), sources, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(context.Background(), Config{Objects: []*Object{newObject("maps", prog, noRecords(t))}, Corpus: corp, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	subjects := make(map[string]bool)
	for _, f := range rep.Programs[0].Findings {
		if FamilyOf(f.Code) == FamilyMapType {
			subjects[f.Subject] = true
		}
	}
	return slices.Sorted(maps.Keys(subjects))
}

// TestMapTypeNames holds that the types of maps have the kernel's names, of a
// kernel that has them if there is one.
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

// TestKnownMapTypes compares the table with every kernel at hand.
func TestKnownMapTypes(t *testing.T) {
	n := 0
	testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
		got := make(mapTypes)
		got.learn(inspectItem(t, it, &wanted{names: make(map[string]int)}).enums[enumMap])
		for v, name := range got {
			if want := make(mapTypes).name(uint32(v)); name != want {
				t.Errorf("%s: %d is %s, not %s", it.Name, v, name, want)
			}
		}
		n = max(n, len(got))
	})
	if n != len(knownMapTypes) {
		t.Errorf("the kernels have %d types, the table %d", n, len(knownMapTypes))
	}
}

// TestLearnMapTypes has a type that is newer than the table, in any order of
// kernels.
func TestLearnMapTypes(t *testing.T) {
	older := map[string]uint64{"BPF_MAP_TYPE_SOON": 99, "__MAX_BPF_MAP_TYPE": 100}
	newer := map[string]uint64{"BPF_MAP_TYPE_SOON_DEPRECATED": 99, "BPF_MAP_TYPE_SOON": 99, "BPF_MAP_TYPE_LATER": 100}
	for _, enums := range [][]map[string]uint64{{older, newer}, {newer, older}} {
		m := make(mapTypes)
		for _, e := range enums {
			m.learn(e)
		}
		if m.name(99) != "BPF_MAP_TYPE_SOON" || m.name(100) != "BPF_MAP_TYPE_LATER" || m.name(101) != "map type 101" {
			t.Error(m)
		}
	}
}

// TestMapTypeRenamed has a kernel with names of its own for the types of maps, which are not those of the findings on other kernels.
func TestMapTypeRenamed(t *testing.T) {
	m := make(mapTypes)
	m.learn(map[string]uint64{"BPF_MAP_TYPE_H": mapHash})
	if got := m.name(mapHash); got != "BPF_MAP_TYPE_HASH" {
		t.Error(got)
	}
}
