// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testelf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestTarget attaches a program to what no kernel has, to what some have, and to
// what all have.
func TestTarget(t *testing.T) {
	raceflag.SkipSerial(t)
	data := testinput.Named(t, "lsmhooks.bpfel.o").Data
	o, err := Parse(t.Context(), "o", data)
	if err != nil {
		t.Fatal(err)
	}
	corp, err := corpus.Open(t.Context(), []string{testinput.Vmlinux(t)}, corpus.Options{})
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
			for _, f := range findingsOn(p, k, FamilyTarget) {
				s = max(s, f.Status)
				if supplied := f.Code == AttachTargetLoader; supplied != (f.Status == Unknown) {
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
		to, programs := o.WithTarget("no_such_*", hook)
		if got := verdicts(to); len(programs) != 1 || got[want] == 0 || got[Unknown] != 0 {
			t.Errorf("%s: %v", hook, got)
		}
	}
	if _, programs := o.WithTarget("no_such_program", "file_open"); programs != nil {
		t.Error("a program that is not there was attached")
	}
}

// TestTargetVotes adds a kernel whose BTF has no functions, which cannot know a hook: it does not change the verdicts on the others.
func TestTargetVotes(t *testing.T) {
	raceflag.SkipSerial(t)
	o, err := Parse(t.Context(), "o", testinput.Named(t, "lsmhooks.bpfel.o").Data)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	odd := filepath.Join(dir, "kylin", "V10", "x86_64", "4.19.90.btf")
	if err := os.MkdirAll(filepath.Dir(odd), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(odd, testbtf.Types(t, binary.LittleEndian, "struct task_struct 8: pid int 0"), 0o600); err != nil {
		t.Fatal(err)
	}
	corp, err := corpus.Open(t.Context(), []string{testinput.Vmlinux(t), dir}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(t.Context(), Config{Objects: []*Object{o}, Corpus: corp, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, odds := find(t, rep, "no_such_hook", "kylin/V10/x86_64/4.19.90")
	for k := range rep.Kernels {
		if got := statusOf(p, k, FamilyTarget); (got < Unknown || got == Fails) && p.Status[k] != Other {
			t.Errorf("%s: %s", rep.Kernels[k].Name, got)
		}
	}
	if p.Status[odds] == Other {
		t.Error("the kernel is for another machine")
	}
}

// TestVotes holds which kernels count where no kernel has a type or target.
func TestVotes(t *testing.T) {
	finding := func(s Status, code Code, subject string, kernels ...int) KernelFinding {
		return KernelFinding{Finding{Status: s, Code: code, Subject: subject}, kernels}
	}
	for name, tt := range map[string]struct {
		findings []KernelFinding
		want     Status // of the first one
	}{
		"all lack a type":            {[]KernelFinding{finding(Fails, relo.NoCandidate, "struct x.a", 0, 1, 2, 3)}, Unknown},
		"one has it":                 {[]KernelFinding{finding(Fails, relo.NoCandidate, "struct x.a", 0, 1, 2)}, Fails},
		"one is for another machine": {[]KernelFinding{finding(Fails, relo.NoCandidate, "struct x.a", 0, 1, 2), finding(Other, AnalysisMachine, "o", 3)}, Unknown},
		"one lacks it and is guarded": {[]KernelFinding{
			finding(Fails, relo.NoCandidate, "struct x.a", 0, 1, 2), finding(Guarded, relo.NoCandidate, "struct x.a", 3),
		}, Unknown},
		"one lacks it and may reach it": {[]KernelFinding{
			finding(Fails, relo.NoCandidate, "struct x.a", 0, 1, 2), finding(MayFail, relo.NoCandidate, "struct x.a", 3),
		}, Unknown},
		"one has too much to find": {[]KernelFinding{
			finding(Fails, relo.NoCandidate, "struct x.a", 0, 1, 2), finding(Unknown, AnalysisFindings, "findings", 3),
		}, Unknown},
		"one lacks another type": {[]KernelFinding{
			finding(Fails, relo.NoCandidate, "struct x.a", 0, 1, 2), finding(Guarded, relo.NoCandidate, "struct y.a", 3),
		}, Fails},
		"one has no functions": {[]KernelFinding{
			finding(Fails, AttachTargetMissing, "function f", 0, 1, 2), finding(Unknown, AttachTargetNoFunctions, "lsm/f", 3),
		}, Unknown},
		"one may have it in a module": {[]KernelFinding{
			finding(Fails, AttachTargetMissing, "function f", 0, 1, 2), finding(MayFail, AttachTargetModule, "function f", 3),
		}, Unknown},
		"one has it in a module": {[]KernelFinding{
			finding(Fails, AttachTargetMissing, "function f", 0, 1, 2), finding(MayFail, ModuleNeeded, "function f", 3),
		}, Fails},
		"too few know": {[]KernelFinding{
			finding(Fails, AttachTargetMissing, "function f", 0, 1), finding(Unknown, AttachTargetNoFunctions, "lsm/f", 2, 3),
		}, Fails},
	} {
		p := &Program{Findings: tt.findings}
		blameLoader(p.Findings, 4)
		if got := p.Findings[0].Status; got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// TestTypes has a loader add types that no kernel has.
func TestTypes(t *testing.T) {
	raceflag.SkipSerial(t)
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
	corp, err := corpus.Open(t.Context(), []string{testinput.Vmlinux(t)}, corpus.Options{})
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

// TestUnnamedTarget holds verdicts on programs whose section names no target. The kernel loads kprobes and raw tracepoints without
// one. It refuses programs that attach by BTF ("Tracing programs must provide btf_id"), so their loader sets the target.
func TestUnnamedTarget(t *testing.T) {
	raceflag.SkipSerial(t)
	code := []byte{0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0} // return 0
	cases := map[string]Status{
		"lsm": Unknown, "fentry": Unknown, "fexit.s": Unknown, "fmod_ret": Unknown, "tp_btf": Unknown, "kprobe": OK, "raw_tp": OK,
	}
	f := testelf.File{Order: binary.LittleEndian, Type: elf.ET_REL, Machine: elf.EM_BPF}
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		f.Sections = append(f.Sections, testelf.Section{Name: name, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: code})
		f.Symbols = append(f.Symbols, testelf.Symbol{Name: name, Section: i, Size: uint64(len(code)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)})
	}
	f.Sections = append(f.Sections, testelf.Section{Name: "license", Data: []byte("GPL\x00")})
	data, _ := f.Build()
	o, err := Parse(t.Context(), "unnamed", data)
	if err != nil {
		t.Fatal(err)
	}
	rep := runWith(t, Config{Objects: []*Object{o}})
	for name, want := range cases {
		k := slices.IndexFunc(rep.Kernels, func(k Kernel) bool { return k.Key().Release == "6.1.0-47-amd64" })
		if p, _ := find(t, rep, name, rep.Kernels[k].Name); p.Load[k] != want {
			t.Errorf("%s: %s, want %s: %v", name, p.Load[k], want, p.Findings)
		}
	}
}
