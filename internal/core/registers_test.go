// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
)

// TestMachinesOfObject checks which machines the objects of testdata are for by what they read.
func TestMachinesOfObject(t *testing.T) {
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
		o, err := core.ParseObject(p, data)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(p)
		if got := strings.Join(o.Machines(), " "); got != want[name] {
			t.Errorf("%s: %q, want %q", name, got, want[name])
		}
	}
}

// TestMachinesOfRegisters checks what the registers that an object reads say of its machines.
func TestMachinesOfRegisters(t *testing.T) {
	const (
		x86   = "struct pt_regs 24: r15 long 0, di long 8, sp long 16\n"
		arm64 = "struct user_pt_regs 24: regs long 0, sp long 8, pstate long 16\n"
		small = "struct pt_regs___small 8: di long 0\nstruct pt_regs___regs 8: regs long 0\nstruct pt_regs___odd 8: odd long 0\n"
		inner = "struct #registers 16: regs long 0, pstate long 8\nstruct pt_regs___inner 24: #r #registers 0, orig_x0 long 16\n"
	)
	for _, c := range []struct{ asks, want string }{
		{"byte_off struct task_struct.pid", ""}, // the machine that it was compiled on says nothing
		{"byte_off struct pt_regs.sp", "x86_64"},
		{"byte_off struct user_pt_regs.sp", "arm64"},
		{"byte_off struct pt_regs.di\nbyte_off struct user_pt_regs.regs", "arm64 x86_64"},
		{"byte_off struct pt_regs___small.di", "x86_64"},
		{"byte_off struct pt_regs___regs.regs", "arm64 loongarch64 mips64el mipsel"},
		{"byte_off struct pt_regs___odd.odd", ""},
		{"byte_off struct pt_regs___inner.pstate", "arm64"},
		{"byte_off struct pt_regs.di\nfield_exists struct pt_regs.di", ""},
		{"byte_off struct pt_regs.di\ntype_exists struct pt_regs", ""},
		{"type_size struct pt_regs", ""},
	} {
		types := "int long 8\nstruct task_struct 8: pid long 0\n" + x86 + arm64 + small + inner
		o, err := core.ParseObject("o", testbtf.Object(t, binary.LittleEndian, types, c.asks))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(o.Machines(), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.asks, got, c.want)
		}
	}
}
