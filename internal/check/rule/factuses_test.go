// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// released is a kernel with a release and a machine, and no BTF.
func released(v uint64, machine string) *Inventory {
	k := &Inventory{Arch: machine, want: new(Wanted), version: interp.Number{V: v}}
	k.settle()
	return k
}

// mapTypeNamed returns the number of a type of maps.
func mapTypeNamed(t *testing.T, name string) uint32 {
	t.Helper()
	for kind := range uint32(facts.MapTypes) {
		if facts.MapName(kind) == name {
			return kind
		}
	}
	t.Fatalf("there is no type of maps %s", name)
	return 0
}

// ending returns code that returns a number.
func ending(code ...insn) []insn { return append(code, insn{Op: 0xb7}, insn{Op: bpfobj.OpExit}) }

// onPrograms are the findings of the first program of an object.
func onPrograms(t *testing.T, o *Object, k *Inventory) []Finding {
	t.Helper()
	if err := o.follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, l := verdictOn(t, o, k)
	return l
}

// withMap makes an object of a program of a section that loads the address of a map.
func withMap(section string, m bpfobj.Map) *Object {
	o := programOf(section, ending(insn{Op: bpfobj.OpLdImm64, Dst: 1}, insn{}))
	m.Name = "m"
	o.Maps, o.Funcs[0].Insns[0].Ref = []bpfobj.Map{m}, bpfobj.RefTo(bpfobj.RefMap, 0)
	return o
}

// callingKfunc makes an object of a program that calls a kfunc.
func callingKfunc() *Object {
	call := insn{Op: bpfobj.OpCall, Src: asm.PseudoKfuncCall, Ref: bpfobj.RefTo(bpfobj.RefExtern, 0)}
	return NewObject("", &bpfobj.Code{
		Order: binary.LittleEndian, Externs: []bpfobj.Extern{{Name: "bpf_of_the_kernel", Kind: bpfobj.ExternKsym}},
		Funcs:    []bpfobj.Function{{Insns: ending(call)}},
		Programs: []bpfobj.Program{{Section: "socket", Attach: bpfobj.SectionOf("socket"), Funcs: []int{0}}},
	}, nil)
}

// sectionWith returns a section whose programs have a type of attachment.
func sectionWith(t *testing.T, attach string) string {
	t.Helper()
	for _, s := range bpfobj.Sections() {
		if s.Type == "BPF_"+attach {
			return s.Prefix
		}
	}
	t.Fatalf("no section has the type of attachment %s", attach)
	return ""
}

// usesOf make what uses a fact, by the beginning of the fact's name, and return the findings on it.
var usesOf = map[string]func(t *testing.T, name string, k *Inventory) []Finding{
	"section ": func(t *testing.T, name string, k *Inventory) []Finding {
		return onPrograms(t, programOf(name, ending()), k)
	},
	"instruction ": func(t *testing.T, name string, k *Inventory) []Finding {
		if name == "address of a function" {
			o := programOf("socket", ending(insn{Op: bpfobj.OpLdImm64, Dst: 1, Src: asm.PseudoFunc, Ref: bpfobj.RefTo(bpfobj.RefFunc, 1)}, insn{}), ending())
			return onPrograms(t, o, k)
		}
		i := slices.IndexFunc(instructions, func(c struct {
			name   string
			in     insn
			static bool
		}) bool {
			return c.name == name
		})
		if i < 0 {
			t.Fatalf("no instruction %s", name)
		}
		_, l := judgeCode(around(instructions[i].in, true, "socket"), k)
		return l
	},
	"programs of any kernel version": func(t *testing.T, _ string, k *Inventory) []Finding {
		o := programOf("kprobe/x", ending())
		o.Version = uint32(Linux(4, 0))
		return onPrograms(t, o, k)
	},
	"sleeping tracepoints": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onPrograms(t, programOf("raw_tp.s", ending()), k)
	},
	"map-flag ": func(t *testing.T, name string, k *Inventory) []Finding {
		flag, err := strconv.ParseUint(name, 0, 32)
		if err != nil {
			t.Fatal(err)
		}
		return []Finding{k.mapRefused(&bpfobj.Map{Type: uint32(ebpf.Array), Flags: uint32(flag)})}
	},
	"map-type ": func(t *testing.T, name string, k *Inventory) []Finding {
		return []Finding{k.unsetMap(mapTypeNamed(t, name))}
	},
	"sleepable ": func(t *testing.T, name string, k *Inventory) []Finding {
		return onPrograms(t, withMap("lsm.s/bpf", bpfobj.Map{Type: mapTypeNamed(t, name)}), k)
	},
	"call ": func(t *testing.T, name string, k *Inventory) []Finding {
		helper, kind, _ := strings.Cut(name, " ")
		if facts.HelperNamed(helper) == 0 {
			t.Fatalf("there is no helper %s", helper)
		}
		if !isKptr(kind) {
			mapTypeNamed(t, kind)
		}
		e := Evaluation{Scene: &Scene{k: k}, pr: &bpfobj.Program{Attach: bpfobj.SectionOf("xdp")}}
		return []Finding{e.withMap(helper, kind)}
	},
	"license ": func(t *testing.T, name string, k *Inventory) []Finding {
		helper, kind, _ := strings.Cut(name, "/")
		section := "xdp"
		for _, s := range bpfobj.Sections() {
			if s.ProgType == kind {
				section = s.Prefix
			}
		}
		o := programOf(section, ending(insn{Op: bpfobj.OpCall, Imm: facts.HelperNamed(helper)}))
		o.License = ""
		return onPrograms(t, o, k)
	},
	"returns ": func(t *testing.T, name string, k *Inventory) []Finding {
		return onPrograms(t, programOf(sectionWith(t, name), []insn{{Op: 0xb7, Imm: 2}, {Op: bpfobj.OpExit}}), k)
	},
	"trampolines on ": func(t *testing.T, name string, k *Inventory) []Finding {
		e := Evaluation{Scene: &Scene{k: k}}
		e.trampoline(bpfobj.SectionOf("fentry/vfs_read"))
		return e.Findings
	},
	"struct_ops on ": func(t *testing.T, name string, k *Inventory) []Finding {
		e := Evaluation{Scene: &Scene{k: k}}
		e.trampoline(bpfobj.SectionOf("struct_ops/init"))
		return e.Findings
	},
	"many arguments on ": func(t *testing.T, name string, k *Inventory) []Finding {
		return onHook(t, "proto #p int: a u64, b u64, c u64, d u64, e u64, f u64, g u64, h u64, i u64", k)
	},
	"struct arguments": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onHook(t, "proto #p int: a pair", k)
	},
	"arenas on ": func(t *testing.T, _ string, k *Inventory) []Finding {
		return []Finding{k.unsetMap(mapTypeNamed(t, "ARENA"))}
	},
	"d_path in LSM": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onPrograms(t, programOf("lsm/file_open", ending(insn{Op: bpfobj.OpCall, Imm: int64(asm.FnDPath)})), k)
	},
	"d_path in iterators": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onPrograms(t, programOf("iter/task", ending(insn{Op: bpfobj.OpCall, Imm: int64(asm.FnDPath)})), k)
	},
	"kprobe multi": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onPrograms(t, programOf("kprobe.multi/vfs_*", ending()), k)
	},
	"program type LIRC_MODE2": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onPrograms(t, programOf("lirc_mode2", ending()), k)
	},
	"kfunc calls on ": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onPrograms(t, callingKfunc(), k)
	},
	"tail calls of programs with functions on ": func(t *testing.T, name string, k *Inventory) []Finding {
		call := insn{Op: bpfobj.OpCall, Src: asm.PseudoCall, Ref: bpfobj.RefTo(bpfobj.RefFunc, 1)}
		return onPrograms(t, programOf("socket", ending(call, insn{Op: bpfobj.OpCall, Imm: int64(asm.FnTailCall)}), ending()), k)
	},
	"verifier ": func(t *testing.T, name string, k *Inventory) []Finding {
		var l []Finding
		for feature, fact := range features {
			if !k.features.Has(feature) {
				l = append(l, Finding{Status: Fails, Subject: fact.String()})
			}
		}
		return l
	},
	"global data": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onPrograms(t, programOf("socket", ending(insn{Op: bpfobj.OpLdImm64, Dst: 1, Ref: bpfobj.RefTo(bpfobj.RefData, -1)}, insn{})), k)
	},
	"loops": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onPrograms(t, programOf("socket", ending(insn{Op: 0xb7, Dst: 6, Imm: 9}, insn{Op: 0x17, Dst: 6, Imm: 1}, insn{Op: 0x55, Dst: 6, Off: -2})), k)
	},
	"large programs": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onPrograms(t, programOf("socket", ending(slices.Repeat([]insn{{Op: 0xb7}}, 4096)...)), k)
	},
	"function calls": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onPrograms(t, programOf("socket", ending(insn{Op: bpfobj.OpCall, Src: asm.PseudoCall, Ref: bpfobj.RefTo(bpfobj.RefFunc, 1)}), ending()), k)
	},
	"maps on demand": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onPrograms(t, withMap("perf_event", bpfobj.Map{Type: uint32(ebpf.Hash), Flags: 1}), k)
	},
	"map large-keys": func(t *testing.T, _ string, k *Inventory) []Finding {
		return []Finding{k.mapRefused(&bpfobj.Map{Type: uint32(ebpf.Hash), KeySize: 513})}
	},
	"map devmap-program": func(t *testing.T, _ string, k *Inventory) []Finding {
		return []Finding{k.mapRefused(&bpfobj.Map{Type: uint32(ebpf.DevMap), ValueSize: 8})}
	},
	"map cpumap-program": func(t *testing.T, _ string, k *Inventory) []Finding {
		return []Finding{k.mapRefused(&bpfobj.Map{Type: uint32(ebpf.CPUMap), ValueSize: 8})}
	},
	"map cookies": func(t *testing.T, _ string, k *Inventory) []Finding {
		return []Finding{k.mapRefused(&bpfobj.Map{Type: uint32(ebpf.SockMap), ValueSize: 8})}
	},
	"map dotted-names": func(t *testing.T, _ string, k *Inventory) []Finding {
		o := withMap("socket", bpfobj.Map{Type: uint32(ebpf.ArrayOfMaps), Inner: &bpfobj.Map{Type: uint32(ebpf.Array)}})
		return findingsOf(sceneOn(o, k).definitions())
	},
	"memory for global functions": onGlobals("calls_with_pair"),
	"global argument ctx":         onGlobals("calls_with_tagged_context"),
	"global argument nonnull":     onGlobals("calls_with_some"),
	"global argument dynptr":      onGlobals("calls_with_dynptr"),
	"global argument trusted":     onGlobals("calls_with_task"),
	"global argument nullable":    onGlobals("calls_with_maybe_task"),
	"global argument untrusted": func(t *testing.T, _ string, k *Inventory) []Finding {
		p := &Scene{k: k}
		return []Finding{p.judgeGlobal(facts.GlobalArgument("untrusted"))}
	},
	"global result void": onGlobals("calls_for_nothing"),
	"memory of ring buffers": func(t *testing.T, _ string, k *Inventory) []Finding {
		reserve, update := insn{Op: bpfobj.OpCall, Imm: int64(asm.FnRingbufReserve)}, insn{Op: bpfobj.OpCall, Imm: int64(asm.FnMapUpdateElem)}
		return onPrograms(t, programOf("tp", ending(reserve, insn{Op: 0xbf, Dst: 3}, update)), k)
	},
	"memory of arguments": onGlobals("uses_key"),
	"error injection": func(t *testing.T, _ string, k *Inventory) []Finding {
		e := Evaluation{Scene: &Scene{k: k}}
		e.mayInject("function f", "f")
		return e.Findings
	},
	"context registers": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onAccesses(t, programOf("uprobe", ending(insn{Op: 0x7b, Dst: 1, Src: 1})), k)
	},
	"context moved": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onAccesses(t, programOf("kprobe/f", ending(insn{Op: 0x07, Dst: 1, Imm: 8}, insn{Op: 0x79, Dst: 0, Src: 1})), k)
	},
	"locks in maps":                       onSpecial("kprobe/f", spinLock),
	"lists in maps":                       onSpecial("kprobe/f", "bpf_list_head"),
	"trees in maps":                       onSpecial("kprobe/f", "bpf_rb_root"),
	"resilient locks in maps":             onSpecial("socket", "bpf_res_spin_lock"),
	"locks of sleepable programs":         onSpecial("lsm.s/bpf", spinLock),
	"timers of tracing programs":          onSpecial("kprobe/f", "bpf_timer"),
	"work queues of tracing programs":     onSpecial("kprobe/f", "bpf_wq"),
	"resilient locks of tracing programs": onSpecial("kprobe/f", "bpf_res_spin_lock"),
	"map inner-locks": func(t *testing.T, _ string, k *Inventory) []Finding {
		return []Finding{k.mapRefused(&bpfobj.Map{Type: uint32(ebpf.ArrayOfMaps), Inner: &bpfobj.Map{Type: uint32(ebpf.Array), Special: []string{spinLock}}})}
	},
	"stacks in units of 16 bytes": onStacks("socket", 240, 264),
	"reading uninitialized stack": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onPrograms(t, programOf("xdp", ending(insn{Op: 0x62, Dst: 10, Off: -8}, insn{Op: 0x79, Dst: 1, Src: 10, Off: -8})), k)
	},
	"reading unused stack": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onPrograms(t, programOf("xdp", ending(insn{Op: 0x79, Dst: 1, Src: 10, Off: -8})), k)
	},
	"private stacks": onStacks("kprobe/f", 304, 304),
	"context CGROUP_SKB/__sk_buff+": func(t *testing.T, name string, k *Inventory) []Finding {
		off, err := strconv.ParseInt(name, 10, 16)
		if err != nil {
			t.Fatal(err)
		}
		return onAccesses(t, programOf("cgroup_skb/ingress", ending(insn{Op: 0x61, Src: 1, Off: int16(off)})), k)
	},
	"two references": func(t *testing.T, _ string, k *Inventory) []Finding {
		reserve, update := insn{Op: bpfobj.OpCall, Imm: int64(asm.FnRingbufReserve)}, insn{Op: bpfobj.OpCall, Imm: int64(asm.FnMapUpdateElem)}
		return onPrograms(t, programOf("raw_tp", ending(reserve, insn{Op: 0xbf, Dst: 2}, insn{Op: 0xbf, Dst: 3}, update)), k)
	},
	"context xdp_md": func(t *testing.T, _ string, k *Inventory) []Finding {
		return onAccesses(t, programOf("xdp", ending(insn{Op: 0x61, Src: 1, Off: 20})), k)
	},
}

// elsewhere are facts whose uses the tests of these names make: they need BTF of a kernel, or several properties of a
// program.
var elsewhere = map[string]string{
	"kfunc calls": "TestCallers", "disabled hooks": "TestDisabledHooks", "struct_ops links": "TestStructOps", "pointers in maps": "TestKptrs",
	"context given": "TestAddresses", "context kept": "TestAddresses", "locks in maps of programs that may sleep": "TestSpecialValues",
	"timers in maps": "TestSpecialValues", "work queues in maps": "TestSpecialValues", "function tracer": "TestDenied", "null arguments": "TestNullable",
	"trusted pointers": "TestWalks", "structs for the GPL alone": "TestStructLicense", "stacks of late callbacks": "TestStacksOfLateCallbacks",
	"targets in modules": "TestElsewhere", "variables in modules": "TestElsewhere", "kfuncs in modules": "TestElsewhere", "struct_ops in modules": "TestElsewhere",
	"argument pointer to a number": "TestContext", "argument pointer to a typedef of a number": "TestContext", "argument pointer to const void": "TestContext",
	"argument pointer to anything": "TestContext", "whole pointers": "TestContext", "tail calls of programs with functions on arm": "TestNever",
	"arenas on arm": "TestNever", "kfunc calls on arm": "TestNever", "sleeping tracing programs": "TestSleepingTracing", "numbers in contexts": "TestNumbersInContexts", "real-time timers": "TestRealTime",
}

// TestNever checks the verdicts on what no kernel for a machine has, whatever its release.
func TestNever(t *testing.T) {
	for _, name := range []string{"tail calls of programs with functions on ", "arenas on ", "kfunc calls on "} {
		use := usesOf[name]
		for _, version := range []Release{Linux(4, 18), Linux(7, 3)} {
			if got := Worst(use(t, "arm", released(uint64(version), "arm"))); got != Fails {
				t.Errorf("%sarm, %s: %s, want fails", name, version, got)
			}
		}
		if got := Worst(use(t, "x86_64", released(uint64(Linux(7, 3)), "x86_64"))); got == Fails {
			t.Errorf("%sx86_64: fails", name)
		}
	}
}

// TestElsewhereExists checks that there are the tests of elsewhere.
func TestElsewhereExists(t *testing.T) {
	var tests strings.Builder
	for _, pattern := range []string{"*_test.go", "../*_test.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			text, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
	}
	for _, fact := range facts.All() {
		if test := elsewhere[fact.String()]; test != "" && !strings.Contains(tests.String(), "func "+test+"(") {
			t.Errorf("%s: there is no %s", fact, test)
		}
	}
}

// onHook returns the findings on the prototype of a function to which a program is attached.
func onHook(t *testing.T, proto string, k *Inventory) []Finding {
	t.Helper()
	view, err := btf.New(testbtf.Types(t, binary.LittleEndian, "struct pair 16: a u64 0, b u64 8\n"+proto+"\nfunc f #p"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for id := view.FirstID(); int(id) < view.NumTypes(); id++ {
		if view.Type(id).Kind() == btf.KindFuncProto {
			e := Evaluation{Scene: &Scene{k: k}, pr: &bpfobj.Program{Attach: bpfobj.SectionOf("fentry/f")}}
			e.hook = newHook("f", view, id, e.pr.Attach)
			e.prototype("function f")
			return e.Findings
		}
	}
	t.Fatal("no prototype")
	return nil
}

func findingsOf(parts []neededPart) (l []Finding) {
	for _, p := range parts {
		l = append(l, p.f)
	}
	return l
}

// onSpecial returns the findings on a program with a map that has a struct in its values.
func onSpecial(section, special string) func(t *testing.T, _ string, k *Inventory) []Finding {
	return func(t *testing.T, _ string, k *Inventory) []Finding {
		return onPrograms(t, withMap(section, bpfobj.Map{Type: uint32(ebpf.Array), Special: []string{special}}), k)
	}
}

// onStacks returns the findings on a program that has some bytes on its stack and calls a function that has others.
func onStacks(section string, bytes ...int16) func(t *testing.T, _ string, k *Inventory) []Finding {
	return func(t *testing.T, _ string, k *Inventory) []Finding {
		store := func(n int) insn { return insn{Op: 0x7a, Dst: 10, Off: -bytes[n]} }
		call := insn{Op: bpfobj.OpCall, Src: asm.PseudoCall, Ref: bpfobj.RefTo(bpfobj.RefFunc, 1)}
		return onPrograms(t, programOf(section, ending(store(0), call), ending(store(1))), k)
	}
}

// onAccesses are the findings on what a program does with its context.
func onAccesses(t *testing.T, o *Object, k *Inventory) []Finding {
	t.Helper()
	if err := o.follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := Evaluation{Scene: sceneOn(o, k), pr: &o.Programs[0]}
	e.kind = e.accesses(0)
	return e.onCode(t.Context())
}

// onGlobals returns the findings on a program of globals.bpfel.o.
func onGlobals(program string) func(t *testing.T, _ string, k *Inventory) []Finding {
	return func(t *testing.T, _ string, k *Inventory) []Finding {
		o, err := Parse(t.Context(), "globals", testinput.Named(t, "globals.bpfel.o").Data)
		if err != nil {
			t.Fatal(err)
		}
		for i := range o.Programs {
			if o.ProgramName(i) == program {
				_, l := programVerdict(t, o, i, k)
				return l
			}
		}
		t.Fatalf("no program %s", program)
		return nil
	}
}

// TestFactUses judges a program, map or call that uses a fact, for each fact: the first release with the fact gets
// another verdict than the one before.
func TestFactUses(t *testing.T) {
	tried := 0
	for _, f := range facts.All() {
		if elsewhere[f.String()] != "" {
			continue
		}
		use, rest := usesOf[f.String()], ""
		for prefix, u := range usesOf {
			if name, ok := strings.CutPrefix(f.String(), prefix); ok && use == nil {
				use, rest = u, name
			}
		}
		if use == nil {
			t.Errorf("nothing uses %s here", f)
			continue
		}
		if tried++; f.Since() == 0 {
			t.Errorf("every kernel has %s", f)
			continue
		}
		machine := f.Machine()
		if machine == "" {
			machine = "x86_64"
		}
		since, before := uint64(f.Since()), uint64(f.Since())-1
		with, without := use(t, rest, released(since, machine)), use(t, rest, released(before, machine))
		if a, b := Worst(with), Worst(without); slices.Equal(with, without) || a == b && a == OK {
			t.Errorf("%s: %v on %s, %v before", f, with, f.Since(), without)
		}
	}
	t.Logf("%d facts", tried)
	if tried < 100 {
		t.Errorf("%d facts", tried)
	}
}
