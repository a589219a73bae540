// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestWitnesses compares the witnesses of facts with the kernels of a corpus: Debian's kernels have the BPF of their
// release, so that a witness exists since the fact came. Other kernels have newer BPF than their release says, but lose
// nothing. With -v it prints a table.
func TestWitnesses(t *testing.T) {
	raceflag.SkipSerial(t)
	want := &Wanted{names: make(map[string]int)}
	want.add(featureNames()...)
	var table bytes.Buffer
	n := 0
	testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
		release := it.Key.Release
		if release == "" || release[0] < '0' || release[0] > '9' {
			return
		}
		k := inspectItem(t, it, want)
		if !k.whole {
			t.Errorf("%s is not the BTF of a whole kernel", it.Name)
		}
		fmt.Fprintf(&table, "\n%s:", it.Name)
		for _, f := range facts.All() {
			if m := f.Machine(); m != "" && m != k.Arch {
				continue
			}
			a := k.facts.Has(f)
			if a.Decided != ByWitness {
				continue
			}
			if a.Presence == facts.Yes {
				fmt.Fprintf(&table, " %s;", f)
			}
			since := kernel.CompareVersions(release, f.Since().String()) >= 0
			early := a.Presence == facts.Yes && !since && it.Key.ID == "debian" && f != facts.StacksOfLateCallbacks // updates of 6.1 have it
			late := a.Presence == facts.No && since && f.Since() != 0                                               // a fact that has only an end is in no kernel after it
			if f.Setting() == "" && (late || early) {
				t.Errorf("%s: %s, which came with %s: %+v", it.Name, f, f.Since(), a)
			}
			n++
		}
	})
	t.Log(table.String())
	if n == 0 {
		t.Error("no kernel")
	}
}

// oldest inspects Debian's 5.10.
func oldest(t *testing.T, want *Wanted) (k *Inventory) {
	t.Helper()
	c, err := corpus.Open(t.Context(), []string{filepath.Join(testinput.Vmlinux(t), "debian", "11")}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testinput.Each(t, c, func(it *corpus.Kernel) { k = inspectItem(t, it, want) })
	return k
}

// verdictOn is the verdict on the first program of an object, without its relocations.
func verdictOn(t *testing.T, o *Object, k *Inventory) (Status, []Finding) {
	t.Helper()
	return programVerdict(t, o, 0, k)
}

// programVerdict is verdictOn for program number n.
func programVerdict(t *testing.T, o *Object, n int, k *Inventory) (Status, []Finding) {
	t.Helper()
	p := scenesOn(o, k).merged(n, func(s *Scene) *Evaluation {
		e := &Evaluation{Scene: s, pr: &o.Programs[n]}
		e.license()
		e.interfaces()
		e.kind, e.may = slices.Concat(e.calls(n), e.stacks(), e.freshReads(n)), e.returns(n)
		return e
	})
	all := append(p.Findings, p.onCode(t.Context())...)
	return Worst(all), all
}

// programOf makes an object of functions; the first is a program of a section.
func programOf(section string, functions ...[]insn) *Object {
	prog := &bpfobj.Code{Order: binary.LittleEndian, Programs: []bpfobj.Program{{Section: section, Attach: bpfobj.SectionOf(section)}}}
	for i, code := range functions {
		prog.Funcs = append(prog.Funcs, bpfobj.Function{Insns: code})
		prog.Programs[0].Funcs = append(prog.Programs[0].Funcs, i)
	}
	o := NewObject("", prog, nil)
	o.License = "GPL"
	return o
}

// TestOldLicenses checks the verdicts on what kernels, or old ones alone, keep from programs without a license
// compatible with the GPL.
func TestOldLicenses(t *testing.T) {
	raceflag.SkipSerial(t)
	call := func(id asm.BuiltinFunc) []insn {
		return []insn{{Op: bpfobj.OpCall, Imm: int64(id)}, {Op: 0xb7}, {Op: bpfobj.OpExit}}
	}
	never := Linux(9, 0)
	k := oldest(t, NewWanted(nil))
	for _, to := range []Release{Linux(5, 10), Linux(5, 8), Linux(5, 7), Linux(4, 19)} {
		Age(k, to)
		for _, license := range []string{"GPL", "Dual MIT/GPL", "Apache-2.0", ""} {
			for _, tt := range []struct {
				section string
				helper  asm.BuiltinFunc
				since   Release
				without Status // on older kernels
			}{
				{"xdp", asm.FnKtimeGetNs, Linux(5, 8), MayFail}, {"xdp", asm.FnGetSmpProcessorId, 0, OK}, {"kprobe", asm.FnGetStackid, never, Fails},
				{"perf_event", asm.FnGetStackid, Linux(5, 9), Fails},
			} {
				o, want := programOf(tt.section, call(tt.helper)), OK
				if o.License = license; to < tt.since && !strings.Contains(license, "GPL") {
					want = tt.without
				}
				if got, l := verdictOn(t, o, k); got != want {
					t.Errorf("%s in %s with license %q on %s: %s, want %s: %v", tt.helper, tt.section, license, to, got, want, l)
				}
			}
		}
	}
}

// TestOldVerifiers has a program for each form of code that verifiers did not always take, with the last release that
// refuses it.
func TestOldVerifiers(t *testing.T) {
	raceflag.SkipSerial(t)
	ret := []insn{{Op: 0xb7}, {Op: bpfobj.OpExit}}
	data := insn{Op: bpfobj.OpLdImm64, Dst: 1, Ref: bpfobj.RefTo(bpfobj.RefData, -1)}
	call := insn{Op: bpfobj.OpCall, Src: asm.PseudoCall, Ref: bpfobj.RefTo(bpfobj.RefFunc, 1)}
	tail := []insn{{Op: 0xbf, Dst: 6, Src: 1}, call, {Op: bpfobj.OpCall, Imm: int64(asm.FnTailCall)}, {Op: 0xb7}, {Op: bpfobj.OpExit}}
	loop := []insn{{Op: 0xb7, Dst: 6, Imm: 9}, {Op: 0x17, Dst: 6, Imm: 1}, {Op: 0x55, Dst: 6, Off: -2}, {Op: 0xb7}, {Op: bpfobj.OpExit}}
	programs := []struct {
		name    string
		o       *Object
		refused Release // 0 for no kernel
	}{
		{"nothing", programOf("socket", ret), 0},
		{"global data", programOf("socket", slices.Concat([]insn{data, {}}, ret)), Linux(5, 1)},
		{"unreached data", programOf("socket", slices.Concat(ret, []insn{data, {}}, ret)), Linux(5, 1)},
		{"loop", programOf("socket", loop), Linux(5, 2)},
		{"loop in a function", programOf("socket", slices.Concat([]insn{call}, ret), loop), Linux(5, 2)},
		{"jump back", programOf("socket", []insn{{Op: 0x05, Off: 2}, {Op: 0xb7}, {Op: bpfobj.OpExit}, {Op: 0x05, Off: -3}}), 0},
		{"4096 instructions", programOf("socket", slices.Concat(slices.Repeat([]insn{{Op: 0xb7}}, 4095), []insn{{Op: bpfobj.OpExit}})), 0},
		{"4097 instructions", programOf("socket", slices.Concat(slices.Repeat([]insn{{Op: 0xb7}}, 4096), []insn{{Op: bpfobj.OpExit}})), Linux(5, 1)},
		{"function", programOf("socket", slices.Concat([]insn{call}, ret), ret), 0},
		{"tail call", programOf("socket", slices.Concat(tail[2:3], ret)), 0},
		{"tail call with function", programOf("socket", tail, ret), Linux(5, 9)},
		{"xdp", programOf("xdp", ret), 0},
		{"xdp.frags", programOf("xdp.frags", ret), Linux(5, 17)},
		{"fentry.s", programOf("fentry.s/vfs_read", ret), Linux(5, 9)},
		{"uprobe", programOf("uprobe", ret), 0},
		{"uprobe.s", programOf("uprobe.s", ret), Linux(5, 19)},
	}
	k := oldest(t, NewWanted(nil))
	for _, to := range []Release{Linux(5, 10), Linux(5, 9), Linux(5, 4), Linux(5, 2), Linux(5, 1), Linux(4, 19)} {
		Age(k, to)
		for _, tt := range programs {
			want := OK
			if tt.refused >= to {
				want = Fails
			}
			if got, l := verdictOn(t, tt.o, k); got != want {
				t.Errorf("%s on %s: %s, want %s: %+v", tt.name, to, got, want, l)
			} else if got == Fails && l[len(l)-1].Witness == "" {
				t.Errorf("%s on %s: no witness: %+v", tt.name, to, l)
			}
		}
	}
}

// TestOldMaps has a definition of a map for each form that kernels did not always take, with the last release that
// refuses it.
func TestOldMaps(t *testing.T) {
	raceflag.SkipSerial(t)
	k := oldest(t, NewWanted(nil))
	for _, to := range []Release{Linux(5, 10), Linux(5, 8), Linux(5, 7), Linux(5, 6), Linux(5, 4), Linux(4, 19)} {
		Age(k, to)
		for _, tt := range []struct {
			name    string
			m       bpfobj.Map
			refused Release // 0 for no kernel
			then    Status
		}{
			{"keys", bpfobj.Map{Type: uint32(ebpf.Hash), KeySize: 512, ValueSize: 8}, 0, OK},
			{"large keys", bpfobj.Map{Type: uint32(ebpf.Hash), KeySize: 513, ValueSize: 8}, Linux(5, 10), MayFail},
			{"devices", bpfobj.Map{Type: uint32(ebpf.DevMap), KeySize: 4, ValueSize: 4}, 0, OK},
			{"devices with programs", bpfobj.Map{Type: uint32(ebpf.DevMap), KeySize: 4, ValueSize: 8}, Linux(5, 7), Fails},
			{"processors with programs", bpfobj.Map{Type: uint32(ebpf.CPUMap), KeySize: 4, ValueSize: 8}, Linux(5, 8), Fails},
			{"sockets", bpfobj.Map{Type: uint32(ebpf.SockMap), KeySize: 4, ValueSize: 4}, 0, OK},
			{"sockets with cookies", bpfobj.Map{Type: uint32(ebpf.SockMap), KeySize: 4, ValueSize: 8}, Linux(5, 6), Fails},
			{"hashed sockets with cookies", bpfobj.Map{Type: uint32(ebpf.SockHash), KeySize: 4, ValueSize: 8}, Linux(5, 6), Fails},
			{"sockets of a port with cookies", bpfobj.Map{Type: uint32(ebpf.ReusePortSockArray), KeySize: 4, ValueSize: 8}, 0, OK},
			{"frozen", bpfobj.Map{Type: uint32(ebpf.Array), KeySize: 4, ValueSize: 8, Flags: 0x80}, Linux(5, 1), Fails},
			{"mapped", bpfobj.Map{Type: uint32(ebpf.Array), KeySize: 4, ValueSize: 8, Flags: 0x400}, Linux(5, 4), Fails},
		} {
			want := OK
			if tt.refused >= to {
				want = tt.then
			}
			if f := k.mapRefused(&tt.m); f.Status != want {
				t.Errorf("%s on %s: %s, want %s: %+v", tt.name, to, f.Status, want, f)
			}
		}
	}
}

// TestGlobalArguments checks the verdicts on programs that call functions with arguments or results on which verifiers
// of some releases are strict: they check global functions on their own since 5.6, and learned of more prototypes
// later.
func TestGlobalArguments(t *testing.T) {
	raceflag.SkipSerial(t)
	kernels := make(map[Release]*Inventory)
	for _, to := range []Release{Linux(5, 10), Linux(5, 6), Linux(5, 5), Linux(4, 19)} {
		kernels[to] = oldest(t, NewWanted(nil))
		Age(kernels[to], to)
	}
	c, err := corpus.Open(t.Context(), []string{filepath.Join(testinput.Vmlinux(t), "debian", "12", "x86_64"), filepath.Join(testinput.Vmlinux(t), "debian", "13", "x86_64")}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testinput.Each(t, c, func(it *corpus.Kernel) {
		k := inspectItem(t, it, NewWanted(nil))
		kernels[Release(k.version.V)&^255] = k
	})
	refused := map[string]struct {
		last Release // the last release that refuses it; the first is 5.6
		then Status
	}{
		"calls_with_pair":           {Linux(5, 11), Fails},
		"uses_key":                  {Linux(6, 1), MayFail},
		"calls_for_nothing":         {Linux(7, 0), MayFail},
		"calls_with_anything":       {Linux(99, 0), Fails},
		"calls_with_tagged_context": {Linux(6, 7), Fails}, // with cilium/ebpf only: libbpf replaces the type
		"calls_with_some":           {Linux(6, 7), MayFail},
		"calls_with_task":           {Linux(6, 8), Fails},
		"calls_with_maybe_task":     {Linux(6, 8), Fails},
		"calls_with_dynptr":         {Linux(6, 7), Fails},
	}
	for _, order := range []string{"bpfel", "bpfeb"} {
		data, err := os.ReadFile(testinput.Path(t, "testdata", "bpf", "globals."+order+".o"))
		if err != nil {
			t.Fatal(err)
		}
		o, err := Parse(t.Context(), "globals", data)
		if err != nil {
			t.Fatal(err)
		}
		for i := range o.Programs {
			name, found := o.ProgramName(i), 0
			for to, k := range kernels {
				want := OK
				if r := refused[name]; to >= Linux(5, 6) && to <= r.last {
					want = r.then
				}
				if (name == "calls_with_some" || name == "uses_key") && want != OK && to < Linux(5, 12) {
					want = Fails // as for a pointer without a tag
				}
				_, l := programVerdict(t, o, i, k)
				l = slices.DeleteFunc(l, func(f Finding) bool { return !strings.Contains(f.Subject, "global functions") })
				if got := Worst(l); got != want {
					t.Errorf("%s on %s: %s, want %s: %+v", name, to, got, want, l)
				}
				found += len(l)
			}
			if _, ok := refused[name]; ok != (found > 0) {
				t.Errorf("%s: %d findings", name, found)
			}
		}
	}
}

// TestPreallocation checks the verdicts on programs of perf_event with hash maps that are allocated on demand, which
// kernels before 6.1 refuse even if the program does not reach its use.
func TestPreallocation(t *testing.T) {
	raceflag.SkipSerial(t)
	k := oldest(t, NewWanted(nil))
	for _, to := range []Release{Linux(5, 10), Linux(5, 4), Linux(4, 19)} {
		Age(k, to)
		for _, section := range []string{"perf_event", "kprobe", "socket", "tp", "raw_tp"} {
			for _, m := range []bpfobj.Map{
				{Type: uint32(ebpf.Hash)}, {Type: uint32(ebpf.Hash), Flags: 1}, {Type: uint32(ebpf.PerCPUHash), Flags: 1}, {Type: uint32(ebpf.LPMTrie), Flags: 1},
				{Type: uint32(ebpf.HashOfMaps), Flags: 1}, {Type: uint32(ebpf.ArrayOfMaps), Inner: &bpfobj.Map{Type: uint32(ebpf.Hash), Flags: 1}},
			} {
				o, want := programOf(section, []insn{{Op: 0xb7}, {Op: bpfobj.OpExit}, {Op: bpfobj.OpLdImm64, Dst: 1}, {}, {Op: bpfobj.OpExit}}), OK
				m.Name = "events"
				o.Maps, o.Funcs[0].Insns[2].Ref = []bpfobj.Map{m}, bpfobj.RefTo(bpfobj.RefMap, 0)
				inner := m.Inner != nil && m.Inner.Flags == 1
				if section == "perf_event" && (m.Flags == 1 && m.Type != uint32(ebpf.LPMTrie) || inner) {
					want = Fails
				}
				if got, l := verdictOn(t, o, k); got != want || want != OK && l[0].Name != "events" {
					t.Errorf("%s with a map %+v on %s: %s, want %s: %+v", section, m, to, got, want, l)
				}
			}
		}
	}
}

// callWith makes an object of a program that calls a helper with a map in a register.
func callWith(t *testing.T, section string, m bpfobj.Map, at asm.Register, helper asm.BuiltinFunc) *Object {
	t.Helper()
	o := programOf(section, []insn{{Op: bpfobj.OpLdImm64, Dst: at}, {}, {Op: bpfobj.OpCall, Imm: int64(helper)}, {Op: 0xb7}, {Op: bpfobj.OpExit}})
	o.Maps, o.Funcs[0].Insns[0].Ref = []bpfobj.Map{m}, bpfobj.RefTo(bpfobj.RefMap, 0)
	if err := o.follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestOldMapCalls has a program for each helper that verifiers did not always let programs call with a map of a type,
// with the last release that refuses it.
func TestOldMapCalls(t *testing.T) {
	raceflag.SkipSerial(t)
	k := oldest(t, NewWanted(nil))
	for _, to := range []Release{Linux(5, 10), Linux(5, 9), Linux(5, 7), Linux(5, 6), Linux(5, 4), Linux(5, 2), Linux(4, 19)} {
		Age(k, to)
		for _, tt := range []struct {
			section string
			m       ebpf.MapType
			at      asm.Register
			helper  asm.BuiltinFunc
			refused Release // 0 for no kernel
			then    Status
		}{
			{"xdp", ebpf.Hash, asm.R1, asm.FnMapLookupElem, 0, OK},
			{"xdp", ebpf.XSKMap, asm.R1, asm.FnMapLookupElem, Linux(5, 2), Fails},
			{"xdp", ebpf.XSKMap, asm.R1, asm.FnRedirectMap, 0, OK},
			{"xdp", ebpf.DevMap, asm.R1, asm.FnMapLookupElem, Linux(5, 2), MayFail},
			{"sk_reuseport", ebpf.ReusePortSockArray, asm.R2, asm.FnSkSelectReuseport, 0, OK},
			{"sk_reuseport", ebpf.SockMap, asm.R2, asm.FnSkSelectReuseport, Linux(5, 6), Fails},
			{"sk_reuseport", ebpf.SockHash, asm.R2, asm.FnSkSelectReuseport, Linux(5, 6), Fails},
			{"tc", ebpf.SockMap, asm.R1, asm.FnMapLookupElem, Linux(5, 7), MayFail},
			{"tc", ebpf.SockHash, asm.R1, asm.FnMapLookupElem, Linux(5, 7), MayFail},
			{"tc", ebpf.SockMap, asm.R1, asm.FnMapUpdateElem, Linux(5, 9), Fails},
			{"tc", ebpf.SockHash, asm.R1, asm.FnMapUpdateElem, Linux(5, 9), Fails},
			{"tc", ebpf.SockMap, asm.R1, asm.FnMapDeleteElem, 0, OK},
			{"sk_msg", ebpf.Hash, asm.R1, asm.FnMapDeleteElem, 0, OK},
		} {
			o, want := callWith(t, tt.section, bpfobj.Map{Name: "m", Type: uint32(tt.m)}, tt.at, tt.helper), OK
			if tt.refused >= to {
				want = tt.then
			}
			if got, l := verdictOn(t, o, k); got != want {
				t.Errorf("%s of %s on %s: %s, want %s: %+v", tt.helper, tt.m, to, got, want, l)
			}
		}
	}
}

// TestSockmapDeletions checks the verdicts on programs that delete sockets, which newer kernels and updates of older
// ones let fewer types do.
func TestSockmapDeletions(t *testing.T) {
	raceflag.SkipSerial(t)
	k := oldest(t, NewWanted(nil))
	for _, tt := range []struct {
		to   Release
		want Status
	}{{Linux(5, 4), OK}, {Linux(5, 9), OK}, {Linux(5, 10), MayFail}, {Linux(6, 8), MayFail}, {Linux(6, 10), Fails}, {Linux(7, 1), Fails}} {
		Age(k, tt.to)
		for section, refused := range map[string]bool{"sk_msg": true, "kprobe": true, "cgroup_skb/egress": true, "sockops": false, "tc": false, "xdp": false} {
			o, want := callWith(t, section, bpfobj.Map{Name: "m", Type: uint32(ebpf.SockHash)}, asm.R1, asm.FnMapDeleteElem), OK
			if refused {
				want = tt.want
			}
			if got, l := verdictOn(t, o, k); got != want {
				t.Errorf("%s on %s: %s, want %s: %+v", section, tt.to, got, want, l)
			}
		}
	}
	k = oldest(t, NewWanted(nil))
	Age(k, Linux(6, 10))
	for section, want := range map[string]Status{"fentry/vfs_read": Fails, "iter/task": OK} {
		if got, l := verdictOn(t, callWith(t, section, bpfobj.Map{Name: "m", Type: uint32(ebpf.SockMap)}, asm.R1, asm.FnMapDeleteElem), k); got != want {
			t.Errorf("%s: %s, want %s: %+v", section, got, want, l)
		}
	}
}

// TestSleepableMaps checks the verdicts on maps in programs that may sleep, which can use the more the newer the kernel
// is.
func TestSleepableMaps(t *testing.T) {
	raceflag.SkipSerial(t)
	c, err := corpus.Open(t.Context(), []string{filepath.Join(testinput.Vmlinux(t), "debian")}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	testinput.Each(t, c, func(it *corpus.Kernel) {
		k := inspectItem(t, it, NewWanted(nil))
		if n++; !k.dated() {
			t.Fatalf("%s has no release", it.Name)
		}
		for _, tt := range []struct {
			m     bpfobj.Map
			since Release // 0 for every kernel
			then  Status  // on older kernels
		}{
			{bpfobj.Map{Type: uint32(ebpf.Hash)}, 0, OK},
			{bpfobj.Map{Type: uint32(ebpf.LRUHash)}, 0, OK},
			{bpfobj.Map{Type: uint32(ebpf.Array)}, 0, OK},
			{bpfobj.Map{Type: uint32(ebpf.Hash), Flags: 1}, Linux(6, 1), Fails},
			{bpfobj.Map{Type: uint32(ebpf.PerCPUArray)}, Linux(5, 12), Fails},
			{bpfobj.Map{Type: uint32(ebpf.LRUCPUHash)}, Linux(5, 12), Fails},
			{bpfobj.Map{Type: uint32(ebpf.HashOfMaps), Inner: &bpfobj.Map{Type: uint32(ebpf.Array)}}, Linux(5, 12), Fails},
			{bpfobj.Map{Type: uint32(ebpf.RingBuf)}, Linux(5, 12), MayFail},
			{bpfobj.Map{Type: uint32(ebpf.InodeStorage)}, Linux(5, 17), MayFail},
			{bpfobj.Map{Type: uint32(ebpf.SkStorage)}, Linux(5, 17), MayFail},
			{bpfobj.Map{Type: uint32(ebpf.Queue)}, Linux(6, 12), MayFail},
			{bpfobj.Map{Type: uint32(ebpf.ProgramArray)}, Linux(7, 0), MayFail},
			{bpfobj.Map{Type: uint32(ebpf.LPMTrie), Flags: 1}, Linux(7, 3), MayFail},
		} {
			for _, section := range []string{"lsm.s/bpf", "lsm/bpf"} {
				o, want := programOf(section, []insn{{Op: 0xb7}, {Op: bpfobj.OpExit}, {Op: bpfobj.OpLdImm64, Dst: 1}, {}, {Op: bpfobj.OpExit}}), OK
				tt.m.Name = "events"
				o.Maps, o.Funcs[0].Insns[2].Ref = []bpfobj.Map{tt.m}, bpfobj.RefTo(bpfobj.RefMap, 0)
				if section == "lsm.s/bpf" && k.before(tt.since) {
					want = tt.then
				}
				if got, l := verdictOn(t, o, k); got != want || want != OK && l[0].Name != "events" {
					t.Errorf("%s with a map %+v on %s: %s, want %s: %+v", section, tt.m, it.Name, got, want, l)
				}
			}
		}
	})
	if n < 3 {
		t.Errorf("%d kernels", n)
	}
}

// TestRingMemory checks the verdicts on programs that give memory of a ring buffer to a map.
func TestRingMemory(t *testing.T) {
	raceflag.SkipSerial(t)
	k := oldest(t, NewWanted(nil))
	// Linux 6.1.192, as Debian builds it, refuses it; the commit came with 6.2.
	reserve, value := insn{Op: bpfobj.OpCall, Imm: int64(asm.FnRingbufReserve)}, insn{Op: 0xbf, Dst: 3}
	update := insn{Op: bpfobj.OpCall, Imm: int64(asm.FnMapUpdateElem)}
	for name, code := range map[string][]insn{"from the ring": {reserve, value, update}, "from elsewhere": {value, reserve, update}} {
		o := programOf("tp", slices.Concat(code, []insn{{Op: 0xb7}, {Op: bpfobj.OpExit}}))
		if err := o.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, to := range []Release{Linux(5, 10), Linux(6, 1), Linux(6, 2)} {
			Age(k, to)
			want := OK
			if to < Linux(6, 2) && name == "from the ring" {
				want = MayFail
			}
			if got, l := verdictOn(t, o, k); got != want {
				t.Errorf("%s on %s: %s, want %s: %+v", name, to, got, want, l)
			}
		}
	}
}

// TestStaticFunctions checks that a missing static function proves nothing if the BTF lists no static functions at all.
// Pahole wrote such BTF for arm64 up to 5.10.
func TestStaticFunctions(t *testing.T) {
	raceflag.SkipSerial(t)
	wanted := NewWanted(nil)
	k := oldest(t, wanted)
	sockets := bpfobj.Map{Type: uint32(ebpf.SockMap), KeySize: 4, ValueSize: 8}
	if f := k.mapRefused(&sockets); f.Status != OK {
		t.Fatal(f)
	}
	for _, tt := range []struct {
		without []string
		want    Status
	}{{[]string{"sock_map_lookup_sys"}, Fails}, {[]string{"sock_map_lookup_sys", "array_map_alloc"}, OK}} {
		k := oldest(t, wanted)
		for _, name := range tt.without {
			k.symbols[wanted.names[name]] = nil
		}
		k.settle()
		if f := k.mapRefused(&sockets); f.Status != tt.want {
			t.Errorf("without %v: %s, want %s: %+v", tt.without, f.Status, tt.want, f)
		}
	}
}

// TestMapSettings checks the verdicts on maps of types that only kernels built with a setting have, though the enum
// lists them.
func TestMapSettings(t *testing.T) {
	raceflag.SkipSerial(t)
	wanted := NewWanted(nil)
	for kind, function := range map[ebpf.MapType]string{
		ebpf.Hash: "", ebpf.SockMap: "sock_map_alloc", ebpf.SockHash: "sock_map_alloc", ebpf.XSKMap: "xsk_map_alloc", ebpf.ReusePortSockArray: "reuseport_array_alloc",
		ebpf.CGroupStorage: "cgroup_storage_lookup_elem", ebpf.PerCPUCGroupStorage: "cgroup_storage_lookup_elem", ebpf.CGroupArray: "cgroup_fd_array_free",
		ebpf.StackTrace: "stack_map_alloc", ebpf.InodeStorage: "inode_storage_map_alloc",
	} {
		k, want := oldest(t, wanted), OK
		for _, lacks := range []bool{false, true} {
			if i, ok := wanted.names[function]; lacks && function != "" {
				if !ok {
					t.Errorf("%s is not looked for", function)
					continue
				}
				k.symbols[i], want = nil, Fails
				k.settle()
			}
			o := programOf("socket", []insn{{Op: 0xb7}, {Op: bpfobj.OpExit}})
			o.Maps = []bpfobj.Map{{Name: "m", Type: uint32(kind), KeySize: 4, ValueSize: 4, MaxEntries: 1}}
			found := sceneOn(o, k).definitions()
			got := OK
			for _, p := range found {
				got = max(got, p.f.Status)
			}
			if got != want {
				t.Errorf("%s, lacking %t: %s, want %s: %+v", kind, lacks, got, want, found)
			}
		}
	}
}
