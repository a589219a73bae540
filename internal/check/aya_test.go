// SPDX-License-Identifier: Apache-2.0

package check

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testelf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// ayaTypes are the kernel's types of the tests with aya.
const ayaTypes = "struct task 40: before u64 0, ids u32[4] 8, wide u64 24, signed int 32\nproto p void\nfunc register_kprobe p"

// runAya judges an object on a kernel with ayaTypes and a module, as loaders do.
func runAya(t *testing.T, o *rule.Object, loaders ...rule.Loader) *verdict.Report {
	t.Helper()
	vmlinux := testbtf.Types(t, binary.LittleEndian, ayaTypes)
	module := testbtf.Module(t, binary.LittleEndian, ayaTypes, "struct only 8: a u32 4\nstruct task 8: moved u32 4\nfunc modular p")
	r := newRun(Config{Objects: []*rule.Object{o}, Loaders: loaders})
	r.item(t.Context(), new(target), &corpus.Kernel{
		Key: kernel.Key{ID: "k", Arch: "x86_64", Release: "6.1"}, BTF: vmlinux, Modules: []corpus.Module{{Name: "md_mod", BTF: module}},
	})
	rep, err := r.report(t.Context())
	if err != nil || len(rep.Kernels) != 1 {
		t.Fatalf("%v, %v", rep, err)
	}
	return rep
}

// TestAyaRelocations holds verdicts on relocations that aya decides otherwise than libbpf. One that it refuses ends the load
// of all programs; one without a match makes an instruction invalid, so that other programs load.
func TestAyaRelocations(t *testing.T) {
	const local = "struct task 24: before u64 0, ids u32[2] 8, wide u32 16, signed u64 16, gone u32 20, moved u32 20\nstruct none 4: a u32 0\nstruct only 4: a u32 0"
	for _, tt := range []struct {
		ask         string
		libbpf, aya string // finding on the program that asks
		all         bool   // aya loads no program
	}{
		{"byte_off struct task.before", "", "", false},
		{"byte_off struct task.wide", "", "", false},
		{"byte_off struct task.ids", "", "fails: load-not-resizable", true},
		{"byte_off struct task.signed", "fails: load-not-resizable", "fails: load-not-resizable", true},
		{"byte_off struct task.gone", "fails: field-missing", "fails: field-missing", false},
		{"byte_off struct task.moved", "fails: field-missing", "fails: field-missing", false}, // only the module's struct has the member
		{"byte_off struct only.a", "may fail: module-needed md_mod", "fails: no-candidate", false},
		{"field_exists struct task.gone", "", "", false},
		{"type_exists struct none", "", "", false},
		{"type_size struct none", "", "fails: no-candidate", true},
		{"type_matches struct task", "", "fails: invalid-relocation", true},
	} {
		for _, loader := range []rule.Loader{rule.Libbpf, rule.Aya} {
			data := testbtf.Object(t, binary.LittleEndian, local, "program asks\n"+tt.ask+"\nprogram beside", localValue[tt.ask])
			o, err := rule.Parse(t.Context(), "o", data)
			if err != nil {
				t.Fatal(err)
			}
			want, beside := tt.libbpf, false
			if loader == rule.Aya {
				want, beside = tt.aya, tt.all
			}
			for _, p := range runAya(t, o, loader).Programs {
				got := ""
				for _, f := range p.Findings {
					if f.Relocation != "" {
						f.Loader = ""
						got += brief(&f.Finding)
						if f.Stops == rule.LoadStops != beside {
							t.Errorf("%s with %s: stops %q", tt.ask, loader, f.Stops)
						}
					}
				}
				if w := map[bool]string{true: want}[p.Name == "asks" || beside]; got != w {
					t.Errorf("%s with %s: %s: %q, want %q", tt.ask, loader, p.Name, got, w)
				}
			}
		}
	}
}

// localValue has the values of relocations in the object, without those that are 0.
var localValue = map[string]uint64{
	"byte_off struct task.wide": 16, "byte_off struct task.ids": 8, "byte_off struct task.signed": 16, "byte_off struct task.gone": 20,
	"byte_off struct task.moved": 20, "field_exists struct task.gone": 1, "type_exists struct none": 1, "type_size struct none": 4, "type_matches struct task": 1,
}

// programsIn is an object with a program in each section.
func programsIn(sections ...string) []byte {
	f := testelf.File{Order: binary.LittleEndian, Type: elf.ET_REL, Machine: elf.EM_BPF}
	code := []byte{0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0} // return 0
	for i, s := range sections {
		f.Sections = append(f.Sections, testelf.Section{Name: s, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: code})
		f.Symbols = append(f.Symbols, testelf.Symbol{Name: fmt.Sprint("f", i), Section: i, Size: uint64(len(code)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)})
	}
	data, _ := f.Build()
	return data
}

// TestAyaUnopened holds that a section of one program, or an extern, keeps aya from loading any.
func TestAyaUnopened(t *testing.T) {
	for _, tt := range []struct {
		name string
		data []byte
		want []string
	}{
		{"plain", programsIn("socket", "classifier"), nil},
		{"tc", programsIn("socket", "tc"), []string{"fails: object-aya-section tc"}},
		{"optional", programsIn("socket", "?kprobe/x", "?kprobe/x"), []string{"fails: object-aya-section ?kprobe/x"}},
		{"maps", programsIn("socket", "maps"), []string{"unknown: object-aya-maps maps"}},
		{"kfuncs", testinput.Named(t, "kfuncs.bpfel.o").Data, []string{"fails: object-aya-extern .kconfig", "fails: object-aya-extern .ksyms"}},
	} {
		o, err := rule.Parse(t.Context(), tt.name, tt.data)
		if err != nil {
			t.Fatal(err)
		}
		rep := runAya(t, o, rule.Aya)
		for _, p := range rep.Programs {
			var got []string
			for _, f := range p.Findings {
				if f.OfObject() {
					got = append(got, f.Status.String()+": "+string(f.Code)+" "+f.Name)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: %s: %q, want %q", tt.name, p.Name, got, tt.want)
			}
		}
		if got, fails := rep.Objects[0].Load[0], strings.HasPrefix(fmt.Sprint(tt.want), "[fails"); (got == rule.Fails) != fails {
			t.Errorf("the object %s: %s", tt.name, got)
		}
	}
}

// TestAyaModules attaches to a function of a module. aya does not find its BTF, and the kernel finds its name.
func TestAyaModules(t *testing.T) {
	for section, want := range map[string]map[rule.Loader]string{
		"fentry/modular": {rule.Libbpf: "may fail: module-needed md_mod", rule.Aya: "fails: attach-target-aya-module md_mod"},
		"kprobe/modular": {rule.Libbpf: "may fail to attach: module-needed md_mod", rule.Aya: "may fail to attach: module-needed md_mod"},
	} {
		o, err := rule.Parse(t.Context(), section, programsIn(section))
		if err != nil {
			t.Fatal(err)
		}
		for loader, want := range want {
			var got []string
			for _, f := range runAya(t, o, loader).Programs[0].Findings {
				if len(f.Names) > 0 {
					got = append(got, brief(&f.Finding))
				}
			}
			if !slices.Equal(got, []string{want}) {
				t.Errorf("%s with %s: %q, want %q", section, loader, got, want)
			}
		}
	}
}
