// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/testelf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestTarget attaches a program to what no kernel has, to what some have, and to
// what all have.
func TestTarget(t *testing.T) {
	data := testinput.Named(t, "lsmhooks.bpfel.o").Data
	o, err := Parse(t.Context(), "o", data)
	if err != nil {
		t.Fatal(err)
	}
	corp, err := corpus.Open(t.Context(), []string{testinput.Path(t, "testdata", "vmlinux")}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	verdicts := func(o *Object) map[Status]int {
		rep, err := Run(t.Context(), Config{Objects: []*Object{o}, Corpus: corp, Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		counts := make(map[Status]int)
		p, _ := find(t, rep, "no_such_hook", rep.Kernels[0].Name)
		for k := range rep.Kernels {
			s := OK
			for _, f := range findingsOn(p, k, TopicTarget) {
				s = max(s, f.Status)
				if told := strings.Contains(f.Reason, "--target"); told != (f.Status == Unknown) {
					t.Errorf("%v", f)
				}
			}
			counts[s]++
		}
		return counts
	}
	if got := verdicts(o); got[Fails] != 0 || got[Unknown] == 0 {
		t.Errorf("a hook that no kernel has: %v", got)
	}
	for hook, want := range map[string]Status{"userns_create": Fails, "file_open": OK} {
		to, ok := o.WithTarget("no_such_hook", hook)
		if got := verdicts(to); !ok || got[want] == 0 || got[Unknown] != 0 {
			t.Errorf("%s: %v", hook, got)
		}
	}
	if _, ok := o.WithTarget("no_such_program", "file_open"); ok {
		t.Error("a program that is not there was attached")
	}
}

// TestTypes has a loader add types that no kernel has.
func TestTypes(t *testing.T) {
	data := testinput.Named(t, "supplied.bpfel.o").Data
	o, err := Parse(t.Context(), "supplied", data)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	blob, err := f.Section(".BTF").Data()
	if err != nil {
		t.Fatal(err)
	}
	empty := btf.NewBuilder(binary.LittleEndian)
	empty.Type("my_state", btf.KindStruct, false, 0, 0)
	corp, err := corpus.Open(t.Context(), []string{testinput.Path(t, "testdata", "vmlinux")}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		types []Types
		want  map[string]Status
	}{
		{nil, map[string]Status{"added": Unknown, "asked_for": Guarded, "flavored": Unknown, "kernels_own": Fails}},
		{[]Types{{"supplied", blob}}, map[string]Status{"kernels_own": Fails}},
		{[]Types{{"memberless", empty.Bytes()}}, map[string]Status{"added": Fails, "asked_for": Fails, "flavored": Fails, "kernels_own": Fails}},
		{[]Types{{"memberless", empty.Bytes()}, {"supplied", blob}}, map[string]Status{"added": Fails, "asked_for": Fails, "flavored": Fails, "kernels_own": Fails}},
	} {
		rep, err := Run(t.Context(), Config{Objects: []*Object{o}, Corpus: corp, Jobs: 2, Types: tt.types})
		if err != nil {
			t.Fatal(err)
		}
		for i := range rep.Programs {
			p := &rep.Programs[i]
			for k, s := range p.Status {
				if s != Other && s != tt.want[p.Name] {
					t.Errorf("%d files: %s on %s: %s, want %s: %v", len(tt.types), p.Name, rep.Kernels[k].Name, s, tt.want[p.Name], p.Findings)
				}
			}
		}
	}
	for name, bad := range map[string][]byte{"damaged": blob[:len(blob)-1], "empty": nil} {
		_, err := Run(t.Context(), Config{Objects: []*Object{o}, Corpus: corp, Jobs: 1, Types: []Types{{name, bad}}})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReplaced wants no verdict on a program that replaces a function of another, which the loader chooses.
func TestReplaced(t *testing.T) {
	code := []byte{0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0} // return 0
	f := testelf.File{
		Order: binary.LittleEndian, Type: elf.ET_REL, Machine: elf.EM_BPF,
		Sections: []testelf.Section{{Name: "freplace/subprog", Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: code}},
		Symbols:  []testelf.Symbol{{Name: "f", Size: uint64(len(code)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)}},
	}
	data, _ := f.Build()
	o, err := Parse(t.Context(), "x", data)
	if err != nil {
		t.Fatal(err)
	}
	rep := runWith(t, Config{Objects: []*Object{o}})
	for k, got := range rep.Programs[0].Load {
		if got != Other && got != Unknown {
			t.Errorf("on %s: %s", rep.Kernels[k].Name, got)
		}
	}
}
