// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testbtf"
	"github.com/btfgen/btfgen/internal/testelf"
	"github.com/btfgen/btfgen/internal/testinput"
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

// TestTargetVotes adds a kernel whose BTF has no functions, which cannot know a hook: it does not change the verdicts on the others.
func TestTargetVotes(t *testing.T) {
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
	corp, err := corpus.Open(t.Context(), []string{testinput.Path(t, "testdata", "vmlinux"), dir}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(t.Context(), Config{Objects: []*Object{o}, Corpus: corp, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, odds := find(t, rep, "no_such_hook", "kylin/V10/x86_64/4.19.90")
	for k := range rep.Kernels {
		if got := statusOf(p, k, TopicTarget); (got < Unknown || got == Fails) && p.Status[k] != Other {
			t.Errorf("%s: %s", rep.Kernels[k].Name, got)
		}
	}
	if p.Status[odds] == Other {
		t.Error("the kernel is for another machine")
	}
}

// TestVotes asks which kernels count where no kernel has what a program asks for.
func TestVotes(t *testing.T) {
	finding := func(s Status, topic Topic, subject, reason string, kernels ...int) KernelFinding {
		return KernelFinding{Finding{Status: s, Topic: topic, Subject: subject, Reason: reason}, kernels}
	}
	const other = "is for another machine"
	for name, tt := range map[string]struct {
		findings []KernelFinding
		want     Status // of the first one
	}{
		"all lack a type":            {[]KernelFinding{finding(Fails, TopicCORE, "byte_off struct x.a", noType, 0, 1, 2, 3)}, Unknown},
		"one has it":                 {[]KernelFinding{finding(Fails, TopicCORE, "byte_off struct x.a", noType, 0, 1, 2)}, Fails},
		"one is for another machine": {[]KernelFinding{finding(Fails, TopicCORE, "byte_off struct x.a", noType, 0, 1, 2), finding(Other, TopicAnalysis, "o", other, 3)}, Unknown},
		"one lacks it and is guarded": {[]KernelFinding{
			finding(Fails, TopicCORE, "byte_off struct x.a", noType, 0, 1, 2), finding(Guarded, TopicCORE, "byte_off struct x.a", noType, 3),
		}, Unknown},
		"one lacks it and may reach it": {[]KernelFinding{
			finding(Fails, TopicCORE, "byte_off struct x.a", noType, 0, 1, 2), finding(MayFail, TopicCORE, "byte_off struct x.a", noType+"; too many paths lead there to tell whether it is reached", 3),
		}, Unknown},
		"one has too much to find": {[]KernelFinding{
			finding(Fails, TopicCORE, "byte_off struct x.a", noType, 0, 1, 2), finding(Unknown, TopicAnalysis, "findings", "more than 1 findings", 3),
		}, Unknown},
		"one lacks another type": {[]KernelFinding{
			finding(Fails, TopicCORE, "byte_off struct x.a", noType, 0, 1, 2), finding(Guarded, TopicCORE, "byte_off struct y.a", noType, 3),
		}, Fails},
		"one has no functions": {[]KernelFinding{
			finding(Fails, TopicTarget, "function f", notThere, 0, 1, 2), finding(Unknown, TopicTarget, "lsm/f", "the kernel's BTF has no functions at all", 3),
		}, Unknown},
		"one may have it in a module": {[]KernelFinding{
			finding(Fails, TopicTarget, "function f", notThere, 0, 1, 2), finding(MayFail, TopicTarget, "function f", "module m may have it, whose BTF is not there", 3),
		}, Unknown},
		"one has it in a module": {[]KernelFinding{
			finding(Fails, TopicTarget, "function f", notThere, 0, 1, 2), finding(MayFail, TopicTarget, "function f", "needs module m to be loaded", 3),
		}, Fails},
		"too few know": {[]KernelFinding{
			finding(Fails, TopicTarget, "function f", notThere, 0, 1), finding(Unknown, TopicTarget, "lsm/f", "the kernel's BTF has no functions at all", 2, 3),
		}, Fails},
	} {
		p := &Program{Findings: tt.findings}
		p.nowhere(4)
		if got := p.Findings[0].Status; got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
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
	btf, err := f.Section(".BTF").Data()
	if err != nil {
		t.Fatal(err)
	}
	empty := btfenc.NewBuilder(binary.LittleEndian)
	empty.Type("my_state", btfenc.KindStruct, false, 0, 0)
	corp, err := corpus.Open(t.Context(), []string{testinput.Path(t, "testdata", "vmlinux")}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		types []Types
		want  map[string]Status
	}{
		{nil, map[string]Status{"added": Unknown, "asked_for": Guarded, "flavored": Unknown, "kernels_own": Fails}},
		{[]Types{{"supplied", btf}}, map[string]Status{"kernels_own": Fails}},
		{[]Types{{"memberless", empty.Bytes()}}, map[string]Status{"added": Fails, "asked_for": Fails, "flavored": Fails, "kernels_own": Fails}},
		{[]Types{{"memberless", empty.Bytes()}, {"supplied", btf}}, map[string]Status{"added": Fails, "asked_for": Fails, "flavored": Fails, "kernels_own": Fails}},
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
	for name, bad := range map[string][]byte{"damaged": btf[:len(btf)-1], "empty": nil} {
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
