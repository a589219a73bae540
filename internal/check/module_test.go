// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestModuleTypes reads types that only a module has: those that the verifier reaches without it need it.
func TestModuleTypes(t *testing.T) {
	const types = "struct task_struct 8: pid u32 0"
	vmlinux := testbtf.Types(t, binary.LittleEndian, types)
	module := testbtf.Module(t, binary.LittleEndian, types, "struct my_state 16: started u64 0, count u32 8")
	other := testbtf.Module(t, binary.LittleEndian, types, "struct my_state 8: finished u64 0")
	o, err := rule.Parse(t.Context(), "supplied", testinput.Named(t, "supplied.bpfel.o").Data)
	if err != nil {
		t.Fatal(err)
	}
	const none, fails = "", "fails: field-missing"
	type reasons map[string]string // worst finding about CO-RE, keyed by program
	for name, tt := range map[string]struct {
		modules []corpus.Module
		want    reasons
	}{
		"no module": {nil, reasons{"added": "fails: no-candidate", "asked_for": none, "flavored": "fails: no-candidate"}},
		"one": {[]corpus.Module{{Name: "md_mod", BTF: module}}, reasons{
			"added": "may fail: module-needed md_mod", "asked_for": none, "flavored": fails,
		}},
		"another": {[]corpus.Module{{Name: "md_mod", BTF: other}}, reasons{
			"added": fails, "asked_for": "may fail: field-missing md_mod loaded",
			"flavored": "may fail: module-needed md_mod",
		}},
		"one of two": {[]corpus.Module{{Name: "a_mod", BTF: module}, {Name: "md_mod", BTF: module}}, reasons{
			"added": "may fail: module-needed a_mod,md_mod", "asked_for": none, "flavored": fails,
		}},
		"both": {[]corpus.Module{{Name: "a_mod", BTF: other}, {Name: "md_mod", BTF: module}}, reasons{
			"added": "may fail: module-needed md_mod", "asked_for": none, "flavored": "may fail: module-needed a_mod",
		}},
	} {
		r := newRun(Config{Objects: []*rule.Object{o}})
		r.item(t.Context(), new(target), &corpus.Kernel{Key: kernel.Key{ID: "k", Arch: "x86_64", Release: "6.1"}, BTF: vmlinux, Modules: tt.modules})
		rep, err := r.report(t.Context())
		if err != nil || len(rep.Kernels) != 1 {
			t.Fatalf("%s: %v, %v", name, rep, err)
		}
		for _, p := range rep.Programs {
			want, ok := tt.want[p.Name]
			got, s := none, rule.Guarded
			for _, f := range p.Findings {
				if f.Relocation != "" && f.Status > s {
					got, s = brief(&f.Finding), f.Status
				}
			}
			if ok && got != want {
				t.Errorf("%s: %s: %q, want %q", name, p.Name, got, want)
			}
		}
	}
}

// TestHiddenTypes reads a field that a module's struct has and vmlinux's of that name has not: only cilium/ebpf looks at the module's.
func TestHiddenTypes(t *testing.T) {
	const types = "struct req 4: a u32 0"
	vmlinux := testbtf.Types(t, binary.LittleEndian, types)
	module := testbtf.Module(t, binary.LittleEndian, types, "struct req 12: a u32 0, b u32 8")
	o, err := rule.Parse(t.Context(), "o", testbtf.Object(t, binary.LittleEndian, "struct req 8: a u32 0, b u32 4", "byte_off struct req.b", 4))
	if err != nil {
		t.Fatal(err)
	}
	for loader, want := range map[rule.Loader][]string{
		rule.Libbpf: {"fails: field-missing"},
		rule.EbpfGo: {"may fail: module-needed md_mod"},
	} {
		r := newRun(Config{Objects: []*rule.Object{o}, Loaders: []rule.Loader{loader}})
		r.item(t.Context(), new(target), &corpus.Kernel{
			Key: kernel.Key{ID: "k", Arch: "x86_64", Release: "6.1"}, BTF: vmlinux, Modules: []corpus.Module{{Name: "md_mod", BTF: module}},
		})
		rep, err := r.report(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range rep.Programs[0].Findings {
			if f.Relocation != "" {
				f.Loader = ""
				got = append(got, brief(&f.Finding))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", loader, got, want)
		}
	}
}

// TestAbsentSizes has relocations for the size and ID of a type that is missing, or only in a module: loaders differ.
func TestAbsentSizes(t *testing.T) {
	const types = "struct task_struct 8: pid u32 0"
	vmlinux := testbtf.Types(t, binary.LittleEndian, types)
	module := testbtf.Module(t, binary.LittleEndian, types, "struct no_such_struct 4: a int 0")
	o, err := rule.Parse(t.Context(), "kinds", testinput.Named(t, "kinds.bpfel.o").Data)
	if err != nil {
		t.Fatal(err)
	}
	type verdicts map[string]rule.Status // verdicts on CO-RE, keyed by program
	for _, tt := range []struct {
		loaders []rule.Loader
		modules []corpus.Module
		want    verdicts
	}{
		{[]rule.Loader{rule.Libbpf}, nil, verdicts{}},
		{[]rule.Loader{rule.EbpfGo}, nil, verdicts{"no_size": rule.Fails, "no_type_id": rule.Fails}},
		{rule.Loaders(), nil, verdicts{"no_size": rule.Fails, "no_type_id": rule.Fails}},
		{[]rule.Loader{rule.Libbpf}, []corpus.Module{{Name: "md_mod", BTF: module}}, verdicts{}},
		{[]rule.Loader{rule.EbpfGo}, []corpus.Module{{Name: "md_mod", BTF: module}}, verdicts{"no_size": rule.MayFail, "no_type_id": rule.Fails}},
	} {
		r := newRun(Config{Objects: []*rule.Object{o}, Loaders: tt.loaders})
		r.item(t.Context(), new(target), &corpus.Kernel{Key: kernel.Key{ID: "k", Arch: "x86_64", Release: "6.1"}, BTF: vmlinux, Modules: tt.modules})
		rep, err := r.report(t.Context())
		if err != nil || len(rep.Kernels) != 1 {
			t.Fatalf("%v, %v", rep, err)
		}
		for _, p := range rep.Programs {
			if !slices.Contains([]string{"no_size", "no_type_id", "no_type", "no_match", "no_struct_field"}, p.Name) {
				continue
			}
			got := rule.OK
			for _, f := range p.Findings {
				if f.Relocation == "" {
					continue
				}
				if got = max(got, f.Status); f.Loader != rule.EbpfGo {
					t.Errorf("%s: %v", p.Name, f)
				}
			}
			if got != tt.want[p.Name] {
				t.Errorf("%v, %d modules: %s: %s, want %s", tt.loaders, len(tt.modules), p.Name, got, tt.want[p.Name])
			}
		}
	}
}

// brief is a finding without what it is about.
func brief(f *rule.Finding) string {
	text := f.Status.String()
	if f.Attach {
		text += " to attach"
	}
	text += ": " + string(f.Code)
	if f.Loader != "" {
		text = string(f.Loader) + ": " + text
	}
	return strings.TrimSpace(text + " " + string(f.Names) + " " + string(f.When))
}

// TestForbiddenWithoutModule calls a helper, which programs of the type may not call, only where no module has a type.
func TestForbiddenWithoutModule(t *testing.T) {
	const types, state = "struct task_struct 8: pid u32 0", "struct my_state 8: started u64 0"
	f, err := bpfobj.Open(testbtf.Object(t, binary.LittleEndian, state, "type_exists struct my_state", 1))
	if err != nil {
		t.Fatal(err)
	}
	prog, err := f.Parse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	prog.Funcs[0].Insns = slices.Insert(prog.Funcs[0].Insns, 2,
		insn{Op: asm.JNE.Op(asm.ImmSource), Off: 1}, insn{Op: bpfobj.OpCall, Imm: int64(asm.FnSkbLoadBytes)})
	records, err := core.NewObject("o", f, func() (*bpfobj.Code, error) { return prog, nil })
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(Config{Objects: []*rule.Object{rule.NewObject("o", prog, records)}})
	r.item(t.Context(), new(target), &corpus.Kernel{
		Key: kernel.Key{ID: "k", Arch: "x86_64", Release: "6.1"}, BTF: testbtf.Types(t, binary.LittleEndian, types),
		Modules: []corpus.Module{{Name: "md_mod", BTF: testbtf.Module(t, binary.LittleEndian, types, state)}},
	})
	rep, err := r.report(t.Context())
	if err != nil || len(rep.Programs) != 1 {
		t.Fatal(rep, err)
	}
	var got []string
	for _, f := range rep.Programs[0].Findings {
		if f.Code == rule.HelperForbidden {
			got = append(got, brief(&f.Finding))
		}
	}
	if want := []string{"may fail: helper-forbidden md_mod not-loaded", "guarded: helper-forbidden"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q: %v", got, want, rep.Programs[0].Findings)
	}
}
