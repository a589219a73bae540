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
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testelf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestTarget attaches a program to targets of no kernel, of some kernels, and of all.
func TestTarget(t *testing.T) {
	raceflag.SkipSerial(t)
	data := testinput.Named(t, "lsmhooks.bpfel.o").Data
	o, err := rule.Parse(t.Context(), "o", data)
	if err != nil {
		t.Fatal(err)
	}
	corp, err := corpus.Open(t.Context(), []string{testinput.Vmlinux(t)}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	nowhere := 0 // number of kernels with AttachTargetNowhere
	verdicts := func(o *rule.Object) map[rule.Status]int {
		rep, err := Run(t.Context(), Config{Objects: []*rule.Object{o}, Corpus: corp, Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		counts := make(map[rule.Status]int)
		nowhere = 0
		p, _ := find(t, rep, "no_such_hook", rep.Kernels[0].Name)
		for k := range rep.Kernels {
			s := rule.OK
			for _, f := range findingsOn(p, k, rule.FamilyTarget) {
				s = max(s, f.Status)
				if f.Code == rule.AttachTargetNowhere {
					nowhere++
				}
			}
			counts[s]++
		}
		return counts
	}
	if got := verdicts(o); got[rule.Fails] == 0 || got[rule.Unknown] != 0 || nowhere != got[rule.Fails] {
		t.Errorf("a hook that no kernel has: %v", got)
	}
	for hook, want := range map[string]rule.Status{"userns_create": rule.Fails, "file_open": rule.OK} {
		to, programs := o.WithTarget("no_such_*", hook)
		if got := verdicts(to); len(programs) != 1 || got[want] == 0 || got[rule.Unknown] != 0 || nowhere != 0 {
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
	o, err := rule.Parse(t.Context(), "o", testinput.Named(t, "lsmhooks.bpfel.o").Data)
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
	rep, err := Run(t.Context(), Config{Objects: []*rule.Object{o}, Corpus: corp, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, odds := find(t, rep, "no_such_hook", "kylin/V10/x86_64/4.19.90")
	for k := range rep.Kernels {
		want := rule.Fails
		if k == odds {
			want = rule.Unknown
		}
		if got := statusOf(p, k, rule.FamilyTarget); got != want && p.Status[k] != rule.Other {
			t.Errorf("%s: %s, want %s", rep.Kernels[k].Name, got, want)
		}
	}
	if p.Status[odds] == rule.Other {
		t.Error("the kernel is for another machine")
	}
}

// TestVotes checks which kernels count if none has a type or target, and that no verdict changes.
func TestVotes(t *testing.T) {
	finding := func(s rule.Status, code rule.Code, subject string, kernels ...int) verdict.KernelFinding {
		return verdict.KernelFinding{Finding: rule.Finding{Status: s, Code: code, Subject: subject}, Kernels: kernels}
	}
	for name, tt := range map[string]struct {
		findings []verdict.KernelFinding
		want     bool // the loader may supply the subject of the first finding
	}{
		"all lack a type":            {[]verdict.KernelFinding{finding(rule.Fails, relo.NoCandidate, "struct x.a", 0, 1, 2, 3)}, true},
		"one has it":                 {[]verdict.KernelFinding{finding(rule.Fails, relo.NoCandidate, "struct x.a", 0, 1, 2)}, false},
		"one is for another machine": {[]verdict.KernelFinding{finding(rule.Fails, relo.NoCandidate, "struct x.a", 0, 1, 2), finding(rule.Other, rule.AnalysisMachine, "o", 3)}, true},
		"one lacks it and is guarded": {[]verdict.KernelFinding{
			finding(rule.Fails, relo.NoCandidate, "struct x.a", 0, 1, 2), finding(rule.Guarded, relo.NoCandidate, "struct x.a", 3),
		}, true},
		"one lacks it and may reach it": {[]verdict.KernelFinding{
			finding(rule.Fails, relo.NoCandidate, "struct x.a", 0, 1, 2), finding(rule.MayFail, relo.NoCandidate, "struct x.a", 3),
		}, true},
		"one has too much to find": {[]verdict.KernelFinding{
			finding(rule.Fails, relo.NoCandidate, "struct x.a", 0, 1, 2), finding(rule.Unknown, rule.AnalysisFindings, "findings", 3),
		}, true},
		"one lacks another type": {[]verdict.KernelFinding{
			finding(rule.Fails, relo.NoCandidate, "struct x.a", 0, 1, 2), finding(rule.Guarded, relo.NoCandidate, "struct y.a", 3),
		}, false},
		"one has no functions": {[]verdict.KernelFinding{
			finding(rule.Fails, rule.AttachTargetMissing, "function f", 0, 1, 2), finding(rule.Unknown, rule.AttachTargetNoFunctions, "lsm/f", 3),
		}, true},
		"one may have it in a module": {[]verdict.KernelFinding{
			finding(rule.Fails, rule.AttachTargetMissing, "function f", 0, 1, 2), finding(rule.MayFail, rule.AttachTargetModule, "function f", 3),
		}, true},
		"one has it in a module": {[]verdict.KernelFinding{
			finding(rule.Fails, rule.AttachTargetMissing, "function f", 0, 1, 2), finding(rule.MayFail, rule.ModuleNeeded, "function f", 3),
		}, false},
		"too few know": {[]verdict.KernelFinding{
			finding(rule.Fails, rule.AttachTargetMissing, "function f", 0, 1), finding(rule.Unknown, rule.AttachTargetNoFunctions, "lsm/f", 2, 3),
		}, false},
	} {
		p := &verdict.ProgramRow{Findings: tt.findings}
		blameLoader(p.Findings, 4)
		f := &p.Findings[0]
		if got := f.Code == rule.AttachTargetNowhere || f.Code == rule.TypesSupplied; got != tt.want || f.Status != rule.Fails {
			t.Errorf("%s: %s %s, want %v", name, f.Status, f.Code, tt.want)
		}
	}
}

// TestTypes has a loader add types that no kernel has.
func TestTypes(t *testing.T) {
	data := testinput.Named(t, "supplied.bpfel.o").Data
	o, err := rule.Parse(t.Context(), "supplied", data)
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
		want  map[string]rule.Status
	}{
		{nil, map[string]rule.Status{"added": rule.Fails, "asked_for": rule.Guarded, "flavored": rule.Fails, "kernels_own": rule.Fails}},
		{[]Types{{"supplied", blob}}, map[string]rule.Status{"kernels_own": rule.Fails}},
		{[]Types{{"memberless", empty.Bytes()}}, map[string]rule.Status{"added": rule.Fails, "asked_for": rule.Fails, "flavored": rule.Fails, "kernels_own": rule.Fails}},
		{[]Types{{"memberless", empty.Bytes()}, {"supplied", blob}}, map[string]rule.Status{"added": rule.Fails, "asked_for": rule.Fails, "flavored": rule.Fails, "kernels_own": rule.Fails}},
	} {
		rep, err := Run(t.Context(), Config{Objects: []*rule.Object{o}, Corpus: corp, Jobs: 2, Types: tt.types})
		if err != nil {
			t.Fatal(err)
		}
		for i := range rep.Programs {
			p := &rep.Programs[i]
			for k, s := range p.Status {
				if s != rule.Other && s != tt.want[p.Name] {
					t.Errorf("%d files: %s on %s: %s, want %s: %v", len(tt.types), p.Name, rep.Kernels[k].Name, s, tt.want[p.Name], p.Findings)
				}
			}
		}
	}
	for name, bad := range map[string][]byte{"damaged": blob[:len(blob)-1], "empty": nil} {
		_, err := Run(t.Context(), Config{Objects: []*rule.Object{o}, Corpus: corp, Jobs: 1, Types: []Types{{name, bad}}})
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
	o, err := rule.Parse(t.Context(), "x", data)
	if err != nil {
		t.Fatal(err)
	}
	rep := runWith(t, Config{Objects: []*rule.Object{o}})
	for k, got := range rep.Programs[0].Load {
		if got != rule.Other && got != rule.Unknown {
			t.Errorf("on %s: %s", rep.Kernels[k].Name, got)
		}
	}
}

// TestUnnamedTarget holds verdicts on programs whose section names no target. The kernel loads kprobes and raw tracepoints without
// one. It refuses programs that attach by BTF ("Tracing programs must provide btf_id"), so their loader sets the target.
func TestUnnamedTarget(t *testing.T) {
	code := []byte{0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0} // return 0
	cases := map[string]rule.Status{
		"lsm": rule.Unknown, "fentry": rule.Unknown, "fexit.s": rule.Unknown, "fmod_ret": rule.Unknown, "tp_btf": rule.Unknown, "kprobe": rule.OK, "raw_tp": rule.OK,
	}
	f := testelf.File{Order: binary.LittleEndian, Type: elf.ET_REL, Machine: elf.EM_BPF}
	for i, name := range slices.Sorted(maps.Keys(cases)) {
		f.Sections = append(f.Sections, testelf.Section{Name: name, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: code})
		f.Symbols = append(f.Symbols, testelf.Symbol{Name: name, Section: i, Size: uint64(len(code)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)})
	}
	f.Sections = append(f.Sections, testelf.Section{Name: "license", Data: []byte("GPL\x00")})
	data, _ := f.Build()
	o, err := rule.Parse(t.Context(), "unnamed", data)
	if err != nil {
		t.Fatal(err)
	}
	rep := runWith(t, Config{Objects: []*rule.Object{o}})
	for name, want := range cases {
		k := slices.IndexFunc(rep.Kernels, func(k verdict.Column) bool { return k.Key().Release == "6.1.0-47-amd64" })
		if p, _ := find(t, rep, name, rep.Kernels[k].Name); p.Load[k] != want {
			t.Errorf("%s: %s, want %s: %v", name, p.Load[k], want, p.Findings)
		}
	}
}
