// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/loadtest"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestWithoutData makes an object what libbpf loads before 5.2: without maps for data sections, and with instructions that refer to none.
// What cilium/ebpf loads stays.
func TestWithoutData(t *testing.T) {
	data, err := os.ReadFile("../../../testdata/bpf/loops.bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	count := func(spec *ebpf.CollectionSpec) (refer, named int) {
		for _, p := range spec.Programs {
			for _, in := range p.Instructions {
				if in.Src == asm.PseudoMapValue && in.OpCode.IsDWordLoad() {
					refer++
					if in.Reference() != "" {
						named++
					}
				}
			}
		}
		return refer, named
	}
	without := withoutData(spec)
	refer, named := count(spec)
	left, none := count(without)
	if refer == 0 || named != refer || left != refer || none != 0 {
		t.Errorf("%d and %d, then %d and %d", refer, named, left, none)
	}
	if spec.Maps[".rodata"] == nil || without.Maps[".rodata"] != nil {
		t.Errorf("maps %v and %v", spec.Maps, without.Maps)
	}
}

// TestPerfArray loads an object whose perf event array has values of 20 bytes. libbpf fails to create it on the running
// kernel, and cilium/ebpf corrects it.
func TestPerfArray(t *testing.T) {
	loadtest.Kernel(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	l := &loader{own: types{core: loadTarget(t, "/sys/kernel/btf/vmlinux")}, cache: btf.NewCache()}
	for name, want := range map[string]error{"perfvalue": syscall.EINVAL, "addresses": nil} {
		data, err := os.ReadFile("../../../testdata/bpf/" + name + ".bpfel.o")
		if err != nil {
			t.Fatal(err)
		}
		o, err := l.read(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(o.missing, want) {
			t.Errorf("%s: %v, want %v", name, o.missing, want)
		}
		for program := range o.spec.Programs {
			if e := l.program(Event{Kind: Program, Name: program}, o); want != nil && (e.Error == "" || e.Alone != "loads") {
				t.Errorf("%s: %s: %q with libbpf, %q with cilium/ebpf", name, program, e.Error, e.Alone)
			}
		}
	}
}

// TestStructOps registers a struct_ops of the running kernel. One that lacks a function that the kernel needs is refused.
func TestStructOps(t *testing.T) {
	loadtest.Kernel(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../../../testdata/bpf/ops.bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	l := &loader{own: types{core: loadTarget(t, "/sys/kernel/btf/vmlinux")}, cache: btf.NewCache()}
	for _, tt := range []struct{ without, want string }{{"answer", Attached}, {"cong_avoid", "not attached: "}} {
		o, err := l.read(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		delete(o.spec.Maps, "missing") // no kernel has the map's struct
		delete(o.spec.Programs, tt.without)
		o.missing = nil
		for _, name := range []string{"ssthresh", "undo_cwnd"} {
			if e := l.program(Event{Kind: Program, Name: name}, o); e.Error != "" || !strings.HasPrefix(e.Attach, tt.want) || e.Attach == "" {
				t.Errorf("without %s: %s: %+v, want %q", tt.without, name, e, tt.want)
			}
		}
	}
}

// TestArchive loads programs with the running kernel's BTF and with that of an archive: the same BTF, and that of Linux 6.1, whose
// structs differ.
func TestArchive(t *testing.T) {
	loadtest.Kernel(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	const running = "/sys/kernel/btf/vmlinux"
	same, err := readTypes(t.Context(), running)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "btf")
	if err := os.WriteFile(other, debianBTF(t), 0o600); err != nil {
		t.Fatal(err)
	}
	old, err := readTypes(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../../../testdata/bpf/kinds.bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name         string
		own, archive types
		differ       bool
	}{
		{"the same BTF", types{core: loadTarget(t, running)}, same, false},
		{"in place of the kernel's", same, same, false},
		{"another kernel's", same, old, true},
	} {
		l := &loader{own: tt.own, archive: &tt.archive, cache: btf.NewCache()}
		o, err := l.read(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		loads, differ := 0, 0
		for name := range o.spec.Programs {
			e := l.program(Event{Kind: Program, Name: name}, o)
			if e.Error == "" {
				loads++
			}
			switch {
			case e.Archive == "":
				t.Errorf("%s: %s: not compared", tt.name, name)
			case e.Archive != Same:
				differ++
			}
		}
		if loads == 0 || (differ > 0) != tt.differ {
			t.Errorf("%s: %d programs load, %d differ", tt.name, loads, differ)
		}
	}
}

// TestDiffers compares results of loading a program with the kernel's and with an archive's types.
func TestDiffers(t *testing.T) {
	no, dump := errors.New("no"), errors.New("no dump")
	code := func(imm int64, in ...asm.Instruction) asm.Instructions {
		return append(in, asm.Mov.Imm32(asm.R0, int32(imm)), asm.Return())
	}
	first, second := asm.LoadMapValue(asm.R1, 7, 8), asm.LoadMapValue(asm.R1, 9, 8)
	for _, tt := range []struct {
		own, archive result
		want         string
	}{
		{result{code: code(1)}, result{code: code(1)}, ""},
		{result{err: no}, result{err: dump}, ""},
		{result{code: code(1)}, result{err: no}, "does not load with the archive's BTF: no"},
		{result{err: no}, result{code: code(1)}, "loads only with the archive's BTF"},
		{result{attach: Attached}, result{attach: "not attached: no"}, "with the archive's BTF: not attached: no"},
		{result{unread: dump}, result{code: code(1)}, "cannot be compared: no dump"},
		{result{code: code(1)}, result{code: code(1, first)}, "has 2 instructions, and 3 with the archive's BTF"},
		{result{code: code(1)}, result{code: code(2)}, "instruction 0 is MovImm32 dst: r0 imm: 1, and MovImm32 dst: r0 imm: 2 with the archive's BTF"},
		{result{code: code(5)}, result{code: code(3)}, ""}, // two IDs of one type
		{result{code: code(3)}, result{code: code(5)}, "instruction 0 is MovImm32 dst: r0 imm: 3, and MovImm32 dst: r0 imm: 5 with the archive's BTF"},
		{result{code: code(1, first)}, result{code: code(1, second)}, ""}, // two IDs of one map
	} {
		if got := tt.own.differs(&tt.archive, map[typeIDs]bool{{5, 3}: true}); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// debianBTF returns the BTF of Debian's Linux 6.1.
func debianBTF(t *testing.T) (data []byte) {
	t.Helper()
	corp, err := corpus.Open(t.Context(), []string{"../../../testdata/vmlinux/debian/12/x86_64"}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := corp.Files[0].Read(t.Context(), func(k *corpus.Kernel) error { data = bytes.Clone(k.BTF); return nil }); err != nil {
		t.Fatal(err)
	}
	return data
}

// TestSections checks that libbpf's rules refuse programs if libbpf does not know their section, and no others.
func TestSections(t *testing.T) {
	l := &loader{own: types{core: loadTarget(t, "../../../testdata/vmlinux/debian/12/x86_64")}, cache: btf.NewCache()}
	data, err := os.ReadFile(testinput.Path(t, "testdata", "bpf", "sections.bpfel.o"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := l.read(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	object, err := rule.Parse(t.Context(), "sections", data)
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for i := range object.Programs {
		pr := &object.Programs[i]
		name := object.Funcs[pr.Fn].Name
		r := l.libbpf(name, o, &l.own, o.relocator)
		got, want := r.err != nil && strings.Contains(r.err.Error(), "no type of programs"), !pr.Attach.Libbpf(pr.Section)
		if got != want {
			t.Errorf("%s in %s: %v", name, pr.Section, r.err)
		}
		if !want {
			known++
		}
	}
	if known == 0 || known == len(object.Programs) {
		t.Errorf("libbpf knows %d of %d sections", known, len(object.Programs))
	}
}
