// SPDX-License-Identifier: Apache-2.0

package bpfobj_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj/machine"
)

// TestOfFileName checks which file names name a machine.
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
