// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/engine"
	"github.com/btfgen/btfgen/internal/machine"
	"github.com/btfgen/btfgen/internal/testbtf"
)

// TestOfFileName holds which names of files name a machine.
func TestOfFileName(t *testing.T) {
	little, big := binary.ByteOrder(binary.LittleEndian), binary.ByteOrder(binary.BigEndian)
	for _, c := range []struct {
		name  string
		order binary.ByteOrder
		want  string
	}{
		{"out/probe_x86_bpfel.o", little, "x86_64"},
		{"probe_x86_bpfel_test.o", little, "x86_64"},
		{"probe_bpfel_x86.o", little, "x86_64"},
		{"probe_arm64_bpfel.o", little, "arm64"},
		{"probe_s390_bpfeb.o", big, "s390x"},
		{"probe_powerpc_bpfel.o", little, "ppc64le"},
		{"probe_powerpc_bpfeb.o", big, "ppc64"},
		{"probe_mips_bpfeb.o", big, "mips mips64"},
		{"probe_loongarch_bpfel.o", little, "loongarch64"},
		{"probe_riscv_bpfel.o", little, "riscv64"},
		{"x86.bpf.o", little, "x86_64"},
		{"probe_x86.bpf.o", little, "x86_64"},
		{"probe.bpf.x86.o", little, "x86_64"},
		{"probe.x86_64.bpf.o", little, "x86_64"},
		{"probe-x86_64.o", little, "x86_64"},
		{"probe-x86-64.o", little, "x86_64"},
		{"probe_aarch64", little, "arm64"},
		{"probe.amd64.o", little, "x86_64"},

		{"probe_bpfel.o", little, ""},
		{"probe_bpf.o", little, ""},
		{"probe.o", little, ""},
		{"bpf.o", little, ""},
		{"x86/probe.bpf.o", little, ""},
		{"arm_wrestling.bpf.o", little, ""},
		{"farm.bpf.o", little, ""},
		{"x86_probe.bpf.o", little, ""},
		{"connect_386.o", little, ""},
		{"probe_x86_bpfel.o", big, ""}, // the name is wrong
		{"", little, ""},
	} {
		if got := strings.Join(machine.OfFileName(c.name, c.order), " "); got != c.want {
			t.Errorf("%s, %v: %q, want %q", c.name, c.order, got, c.want)
		}
	}
}

// TestOfObject holds which machines the objects of testdata are for by what they read.
func TestOfObject(t *testing.T) {
	want := map[string]string{
		"regs_x86_bpfel.o": "x86_64", "regs_arm64_bpfel.o": "arm64", "regs_s390_bpfeb.o": "s390x",
		"tcplife.bpfel.o": "x86_64", "tcplife.bpfeb.o": "s390x",
		"module.bpfel.o": "x86_64", "module.bpfeb.o": "s390x",
	}
	paths, err := filepath.Glob("../../testdata/bpf/*.o")
	if err != nil || len(paths) < 50 {
		t.Fatalf("%d objects: %v", len(paths), err)
	}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		o, err := engine.ParseObject(p, data)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(p)
		if got := strings.Join(machine.OfObject(o), " "); got != want[name] {
			t.Errorf("%s: %q, want %q", name, got, want[name])
		}
	}
}

// TestOfRegisters holds what the registers that an object reads say of its machines.
func TestOfRegisters(t *testing.T) {
	const (
		x86   = "struct pt_regs 24: r15 long 0, di long 8, sp long 16\n"
		arm64 = "struct user_pt_regs 24: regs long 0, sp long 8, pstate long 16\n"
		small = "struct pt_regs___small 8: di long 0\nstruct pt_regs___regs 8: regs long 0\nstruct pt_regs___odd 8: odd long 0\n"
	)
	for _, c := range []struct{ asks, want string }{
		{"byte_off struct task_struct.pid", ""}, // the machine that it was compiled on says nothing
		{"byte_off struct pt_regs.sp", "x86_64"},
		{"byte_off struct user_pt_regs.sp", "arm64"},
		{"byte_off struct pt_regs.di\nbyte_off struct user_pt_regs.regs", "arm64 x86_64"},
		{"byte_off struct pt_regs___small.di", "x86_64"},
		{"byte_off struct pt_regs___regs.regs", "arm64 loongarch64 mips64el mipsel"},
		{"byte_off struct pt_regs___odd.odd", ""},
		{"byte_off struct pt_regs.di\nfield_exists struct pt_regs.di", ""},
		{"byte_off struct pt_regs.di\ntype_exists struct pt_regs", ""},
		{"type_size struct pt_regs", ""},
	} {
		types := "int long 8\nstruct task_struct 8: pid long 0\n" + x86 + arm64 + small
		o, err := engine.ParseObject("o", testbtf.Object(t, binary.LittleEndian, types, c.asks))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(machine.OfObject(o), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.asks, got, c.want)
		}
	}
}
