// SPDX-License-Identifier: Apache-2.0

package check

import (
	"debug/elf"
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/testing/testelf"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestStructOps holds verdicts on programs beside a struct_ops that no kernel has: libbpf makes its map before any of them.
func TestStructOps(t *testing.T) {
	for _, name := range []string{"ops.bpfel", "ops.bpfeb"} {
		for loader, want := range map[rule.Loader]rule.Status{rule.Libbpf: rule.Fails, rule.EbpfGo: rule.OK} {
			rep := runWith(t, Config{Loaders: []rule.Loader{loader}}, name)
			for k := range rep.Kernels {
				p, _ := find(t, rep, "beside", rep.Kernels[k].Name)
				want := want
				if key := rep.Kernels[k].Key(); want == rule.Fails && kernel.CompareVersions(key.Release, "6.9") >= 0 && key.Arch != "arm" && key.Arch != "s390x" {
					want = rule.MayFail // a module may have it
				}
				if p.Load[k] != rule.Other && p.Load[k] != want {
					t.Errorf("%s with %s on %s: %s, want %s: %v", name, loader, rep.Kernels[k].Name, p.Load[k], want, p.Findings)
				}
				// Without links, cilium/ebpf loads the programs of a struct_ops, but cannot register it.
				key := rep.Kernels[k].Key()
				p, _ = find(t, rep, "ssthresh", rep.Kernels[k].Name)
				links := kernel.CompareVersions(key.Release, "6.4") >= 0
				if key.Arch == "x86_64" && loader == rule.EbpfGo && p.Load[k] != rule.Other && (p.Load[k] != rule.OK || (p.Status[k] == rule.OK) != links) {
					t.Errorf("%s on %s: %s, %s to load: %v", name, key, p.Status[k], p.Load[k], p.Findings)
				}
			}
		}
		// With the map left out, kernels accept the rest since they have links of struct_ops, except Debian's on s390x, which has no
		// struct_ops at all, and on 32-bit ARM, which has no BTF of its own.
		rep := runWith(t, Config{Policy: policy(t, "loader-map missing")}, name)
		for k := range rep.Kernels {
			others := rule.OK
			if name == "ops.bpfeb" || kernel.CompareVersions(rep.Kernels[k].Key().Release, "6.4") < 0 {
				others = rule.Fails
			}
			for _, program := range []string{"beside", "ssthresh"} {
				p, _ := find(t, rep, program, rep.Kernels[k].Name)
				others := others
				if program == "ssthresh" && rep.Kernels[k].Key().Arch == "arm" {
					others = rule.Fails
				}
				if p.Load[k] != rule.Other && p.Load[k] != others {
					t.Errorf("%s without the map on %s: %s: %s, want %s: %v", name, rep.Kernels[k].Name, program, p.Load[k], others, p.Findings)
				}
			}
		}
	}
}

// TestUnread holds verdicts on objects that libbpf does not open: with a section "maps" whatever there is in it, and with any
// that it does not know where code refers to it.
func TestUnread(t *testing.T) {
	code := []byte{0x18, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0} // r1 = SYMBOL; return 0
	cases := []struct {
		section string
		refers  bool
		libbpf  rule.Status
	}{
		{"maps", false, rule.Fails}, {"maps", true, rule.Fails}, {"maps/x", true, rule.Fails}, {"maps/x", false, rule.OK}, {"lirc_mode2/maps", true, rule.Fails},
		{".data", true, rule.OK}, {".rodata.x", true, rule.OK}, {".bss", true, rule.OK},
	}
	var objects []*rule.Object
	for _, tt := range cases {
		f := testelf.File{
			Order: binary.LittleEndian, Type: elf.ET_REL, Machine: elf.EM_BPF,
			Sections: []testelf.Section{
				{Name: "raw_tp/sys_enter", Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: code},
				{Name: tt.section, Flags: elf.SHF_ALLOC | elf.SHF_WRITE, Data: make([]byte, 20)},
			},
			Symbols: []testelf.Symbol{
				{Name: "x", Section: 1, Size: 20, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_OBJECT)},
				{Name: "f", Size: uint64(len(code)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)},
			},
		}
		if tt.refers {
			rel := binary.LittleEndian.AppendUint64(nil, 0)
			f.Sections = append(f.Sections, testelf.Section{Name: ".relraw_tp/sys_enter", Type: elf.SHT_REL, Info: 1, Data: binary.LittleEndian.AppendUint64(rel, elf.R_INFO(1, 1))})
		}
		data, _ := f.Build()
		o, err := rule.Parse(t.Context(), tt.section, data)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	for _, loader := range rule.Loaders() {
		rep := runWith(t, Config{Loaders: []rule.Loader{loader}, Objects: objects})
		for i, tt := range cases {
			want := rule.OK
			if loader == rule.Libbpf {
				want = tt.libbpf
			} else if tt.section == "lirc_mode2/maps" { // cilium/ebpf does not read it either
				want = rule.Fails
			}
			for k, got := range rep.Programs[i].Load {
				if got != rule.Other && got != want {
					t.Errorf("%s, referred to: %t, with %s on %s: %s, want %s: %v", tt.section, tt.refers, loader, rep.Kernels[k].Name, got, want, rep.Programs[i].Findings)
				}
			}
		}
	}
}

// TestUndeclared holds verdicts on an object that refers to a function that it does not declare. libbpf does not open it; with
// cilium/ebpf the loader may supply the function, and other programs load. Where either may load the object, that is cilium/ebpf.
func TestUndeclared(t *testing.T) {
	call := []byte{0x85, 0x10, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x95, 0, 0, 0, 0, 0, 0, 0} // undeclared(); return
	ret := []byte{0xb7, 0, 0, 0, 0, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0}                 // return 0
	global, none := elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), elf.ST_INFO(elf.STB_GLOBAL, elf.STT_NOTYPE)
	rel := binary.LittleEndian.AppendUint64(nil, 0)
	f := testelf.File{
		Order: binary.LittleEndian, Type: elf.ET_REL, Machine: elf.EM_BPF,
		Sections: []testelf.Section{
			{Name: "raw_tp/sys_enter", Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: call},
			{Name: "socket", Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Data: ret},
			{Name: ".relraw_tp/sys_enter", Type: elf.SHT_REL, Info: 1, Data: binary.LittleEndian.AppendUint64(rel, elf.R_INFO(1, 10))},
		},
		Symbols: []testelf.Symbol{
			{Name: "undeclared", Section: -1, Info: none},
			{Name: "calls", Size: uint64(len(call)), Info: global},
			{Name: "plain", Section: 1, Size: uint64(len(ret)), Info: global},
		},
	}
	data, _ := f.Build()
	o, err := rule.Parse(t.Context(), "undeclared", data)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		loaders             []rule.Loader
		calls, plain, whole rule.Status
	}{
		{[]rule.Loader{rule.Libbpf}, rule.Fails, rule.Fails, rule.Fails},
		{[]rule.Loader{rule.EbpfGo}, rule.Unknown, rule.OK, rule.Unknown},
		{rule.Loaders(), rule.Unknown, rule.OK, rule.Unknown},
	} {
		rep := runWith(t, Config{Loaders: tt.loaders, Objects: []*rule.Object{o}})
		for k := range rep.Kernels {
			calls, _ := find(t, rep, "calls", rep.Kernels[k].Name)
			plain, _ := find(t, rep, "plain", rep.Kernels[k].Name)
			if calls.Load[k] == rule.Other {
				continue
			}
			if calls.Load[k] != tt.calls || plain.Load[k] != tt.plain || rep.Objects[0].Load[k] != tt.whole {
				t.Errorf("%s on %s: %s, %s, the object %s, want %s, %s, %s: %v", tt.loaders, rep.Kernels[k].Name,
					calls.Load[k], plain.Load[k], rep.Objects[0].Load[k], tt.calls, tt.plain, tt.whole, calls.Findings)
			}
		}
	}
}

// TestStructOpsByMachine holds verdicts on a struct_ops by whether the machine's kernels have trampolines: those for ppc64le since 6.13, and
// those for arm64 since 6.0.
func TestStructOpsByMachine(t *testing.T) {
	rep := runOn(t, "ops.bpfel")
	judged := make(map[string]rule.Status)
	for k := range rep.Kernels {
		p, _ := find(t, rep, "ssthresh", rep.Kernels[k].Name)
		for _, f := range p.Findings {
			if f.Code == rule.AttachTargetTrampoline && slices.Contains(f.Kernels, k) {
				judged[rep.Kernels[k].Key().Arch] = f.Status
			}
		}
	}
	if want := map[string]rule.Status{"ppc64le": rule.MayFail, "arm": rule.MayFail}; !maps.Equal(judged, want) {
		t.Errorf("%v, want %v", judged, want)
	}
}
