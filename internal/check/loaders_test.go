// SPDX-License-Identifier: Apache-2.0

package check

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testelf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// expectLoads compares the verdicts on programs with a loader, on all kernels that their object is for.
func expectLoads(t *testing.T, object string, loader rule.Loader, policy verdict.Policy, want map[string]rule.Status) {
	t.Helper()
	rep := runWith(t, Config{Loaders: []rule.Loader{loader}, Policy: policy}, object)
	for k := range rep.Kernels {
		for program, want := range want {
			p, _ := find(t, rep, program, rep.Kernels[k].Name)
			if p.Load[k] != rule.Other && p.Load[k] != want {
				t.Errorf("%s with %s on %s: %s: %s, want %s: %v", object, loader, rep.Kernels[k].Name, program, p.Load[k], want, p.Findings)
			}
		}
	}
}

// TestKernelVersion checks the verdicts on programs that refer to a variable for the kernel's version of a type that
// cilium/ebpf refuses.
func TestKernelVersion(t *testing.T) {
	for _, object := range []string{"loaders.bpfel", "loaders.bpfeb"} {
		expectLoads(t, object, rule.Libbpf, policy(t, "loader-map outer"), map[string]rule.Status{"plain": rule.OK, "asks_version": rule.OK})
		expectLoads(t, object, rule.EbpfGo, policy(t, "loader-map outer"), map[string]rule.Status{"plain": rule.OK, "asks_version": rule.Fails})
	}
	rep := runOn(t, "biolat.bpfel") // the variable of biolat is an int
	for i := range rep.Programs {
		for k := range rep.Kernels {
			if got := statusOf(&rep.Programs[i], k, rule.FamilyKconfig); got != rule.OK {
				t.Errorf("%s on %s: %s", rep.Programs[i].Name, rep.Kernels[k].Name, got)
			}
		}
	}
}

// TestNoInnerMap checks the verdicts on a map of maps without a definition of the inner ones.
func TestNoInnerMap(t *testing.T) {
	for _, object := range []string{"loaders.bpfel", "loaders.bpfeb"} {
		expectLoads(t, object, rule.Libbpf, verdict.Policy{}, map[string]rule.Status{"plain": rule.MayFail, "looks_up": rule.MayFail})
		expectLoads(t, object, rule.EbpfGo, verdict.Policy{}, map[string]rule.Status{"plain": rule.OK, "looks_up": rule.MayFail})
		expectLoads(t, object, rule.Libbpf, policy(t, "loader-map outer"), map[string]rule.Status{"plain": rule.OK, "looks_up": rule.OK})
	}
}

// TestStaticProgram checks the verdicts on static programs, for which libbpf refuses the object.
func TestStaticProgram(t *testing.T) {
	slow.Skip(t)
	code := []byte{0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0} // return 0
	for _, tt := range []struct {
		section string
		bind    elf.SymBind
		libbpf  rule.Status
	}{
		{"raw_tp/sys_enter", elf.STB_GLOBAL, rule.OK},
		{"raw_tp/sys_enter", elf.STB_LOCAL, rule.Fails},
		{"no_such_type", elf.STB_LOCAL, rule.Fails},
		{".text", elf.STB_LOCAL, rule.OK},
	} {
		f := testelf.File{
			Order: binary.LittleEndian, Type: elf.ET_REL, Machine: elf.EM_BPF,
			Sections: []testelf.Section{
				{Name: tt.section, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: code},
				{Name: "socket", Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: code},
			},
			Symbols: []testelf.Symbol{
				{Name: "f", Size: uint64(len(code)), Info: elf.ST_INFO(tt.bind, elf.STT_FUNC)},
				{Name: "plain", Section: 1, Size: uint64(len(code)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)},
			},
		}
		data, _ := f.Build()
		o, err := rule.Parse(t.Context(), tt.section, data)
		if err != nil {
			t.Fatal(err)
		}
		for loader, want := range map[rule.Loader]rule.Status{rule.Libbpf: tt.libbpf, rule.EbpfGo: rule.OK} {
			rep := runWith(t, Config{Loaders: []rule.Loader{loader}, Objects: []*rule.Object{o}})
			for k := range rep.Kernels {
				if p, _ := find(t, rep, "plain", rep.Kernels[k].Name); p.Load[k] != rule.Other && p.Load[k] != want {
					t.Errorf("%s, %s, with %s on %s: %s, want %s: %v", tt.section, tt.bind, loader, rep.Kernels[k].Name, p.Load[k], want, p.Findings)
				}
			}
		}
	}
}

// TestUnreadable checks the verdicts on an object that cilium/ebpf cannot read: it refers to a weak CONFIG_* variable. Where
// either loader may load it, that is libbpf.
func TestUnreadable(t *testing.T) {
	both := runOn(t, "settings.bpfel").Objects[0]
	if len(both.Loaders) != 2 || !slices.Equal(both.Loaders[0].Status, both.Status) {
		t.Errorf("with both loaders: %v: %v", both.Status, both.Loaders)
	}
	for i, l := range both.Loaders {
		for k, s := range l.Load {
			if s != rule.Other && (s == rule.Fails) != (i == 1) {
				t.Errorf("with both loaders: %s on kernel %d: %s", l.Loader, k, s)
			}
		}
	}
	for loader, want := range map[rule.Loader]rule.Status{rule.Libbpf: rule.OK, rule.EbpfGo: rule.Fails} {
		rep := runWith(t, Config{Loaders: []rule.Loader{loader}}, "settings.bpfel")
		for k := range rep.Kernels {
			p, _ := find(t, rep, "probed", rep.Kernels[k].Name)
			if p.Load[k] != rule.Other && (p.Load[k] == rule.Fails) != (want == rule.Fails) {
				t.Errorf("with %s on %s: %s: %v", loader, rep.Kernels[k].Name, p.Load[k], p.Findings)
			}
		}
		for k, s := range rep.Objects[0].Load {
			if s != rule.Other && (s == rule.Fails) != (want == rule.Fails) {
				t.Errorf("the object with %s on %s: %s", loader, rep.Kernels[k].Name, s)
			}
		}
	}
}

// TestUnchangedWidth checks the verdicts on a read of 8 bytes of the context where the kernel has a signed int. libbpf refuses it.
// cilium/ebpf leaves the width alone, and whether the verifier takes that is not judged.
func TestUnchangedWidth(t *testing.T) {
	for _, loader := range rule.Loaders() {
		for _, object := range []string{"broken.bpfel", "broken.bpfeb"} {
			rep := runWith(t, Config{Loaders: []rule.Loader{loader}}, object)
			for k := range rep.Kernels {
				p, _ := find(t, rep, "signed_widened", rep.Kernels[k].Name)
				want := rule.Fails
				if loader == rule.EbpfGo {
					want = rule.MayFail
				}
				if p.Load[k] != rule.Other && p.Load[k] != want {
					t.Errorf("%s with %s on %s: %s, want %s: %v", object, loader, rep.Kernels[k].Name, p.Load[k], want, p.Findings)
				}
			}
		}
	}
}

// TestStops has a relocation that both loaders refuse, and a map that ebpf-go refuses. Findings on them name what the loader gives up on,
// whether it is judged alone or not.
func TestStops(t *testing.T) {
	for _, tt := range []struct {
		object  string
		code    rule.Code
		loaders []rule.Loader
		want    rule.Stops
	}{
		{"invalid.bpfel", relo.InvalidRelocation, []rule.Loader{rule.Libbpf}, rule.ObjectStops},
		{"invalid.bpfel", relo.InvalidRelocation, []rule.Loader{rule.EbpfGo}, rule.ProgramStops},
		{"invalid.bpfel", relo.InvalidRelocation, rule.Loaders(), rule.ObjectStops},
		{"pinned.bpfel", rule.MapPinning, []rule.Loader{rule.EbpfGo}, rule.ProgramStops},
		{"pinned.bpfel", rule.MapPinning, rule.Loaders(), rule.ProgramStops}, // libbpf does not open the object
	} {
		found := 0
		for _, p := range runWith(t, Config{Loaders: tt.loaders}, tt.object).Programs {
			for _, f := range p.Findings {
				if f.Code != tt.code {
					continue
				}
				if found++; f.Stops != tt.want {
					t.Errorf("%s with %s: %s: %q, want %q", tt.object, tt.loaders, p.Name, f.Stops, tt.want)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s with %s: no finding %s", tt.object, tt.loaders, tt.code)
		}
	}
}
