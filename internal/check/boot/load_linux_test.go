// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/rlimit"

	"github.com/btfgen/btfgen/internal/testing/loadtest"
)

// TestPerfArray loads an object whose perf event array has values of 20 bytes. libbpf fails to create it on the running
// kernel, and cilium/ebpf corrects it.
func TestPerfArray(t *testing.T) {
	loadtest.Kernel(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	l := &loader{kernel: loadTarget(t, "/sys/kernel/btf/vmlinux"), cache: btf.NewCache()}
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
	l := &loader{kernel: loadTarget(t, "/sys/kernel/btf/vmlinux"), cache: btf.NewCache()}
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
