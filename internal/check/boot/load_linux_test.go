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

	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/loadtest"
)

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
		delete(o.spec.Maps, "missing") // which no kernel has
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
