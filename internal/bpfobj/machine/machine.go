// SPDX-License-Identifier: Apache-2.0

// Package machine finds out which machine BTF and BPF objects are for: a kernel's by its struct pt_regs, an object's by its
// file name, by the program that embeds it, or by the registers that its relocations read.
//
// A machine is an architecture in the canonical spelling of pkg/kernel: "x86_64", "arm64".
package machine

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"iter"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Machine is an architecture whose kernels have BTF.
type Machine struct {
	Arch    string // canonical spelling
	ELF     elf.Machine
	Order   binary.ByteOrder
	Pointer uint32 // bytes

	// Register is a member of the kernel's struct pt_regs that no other machine of this byte order and pointer has.
	Register string

	// Registers are the members of pt_regs, user_pt_regs or user_regs_struct that programs read, as bpf_tracing.h and the
	// kernel call them, separated by spaces; "" if they do not identify the machine.
	Registers string
}

var little, big = binary.LittleEndian, binary.BigEndian

const (
	x86       = "r15 r14 r13 r12 bp bx r11 r10 r9 r8 ax cx dx si di orig_ax ip cs flags sp ss"
	powerpc   = "gpr nip msr orig_gpr3 ctr link xer ccr trap dar dsisr result"
	mips      = "regs cp0_epc cp0_status hi lo"
	riscv     = "epc pc ra sp gp tp a0 a1 a2 a3 a4 a5 a6 a7 s0 s1 orig_a0 status badaddr cause"
	loongarch = "regs orig_a0 csr_era"
)

// All are the machines. If several fit, the first is preferred.
var All = []Machine{
	{"x86_64", elf.EM_X86_64, little, 8, "r15", x86},
	{"i386", elf.EM_386, little, 4, "bx", ""}, // its programs look like those for x86_64
	{"arm64", elf.EM_AARCH64, little, 8, "pstate", "regs sp pc pstate orig_x0 syscallno"},
	{"arm", elf.EM_ARM, little, 4, "uregs", "uregs"},
	{"ppc64le", elf.EM_PPC64, little, 8, "nip", powerpc},
	{"ppc64", elf.EM_PPC64, big, 8, "nip", powerpc},
	{"s390x", elf.EM_S390, big, 8, "psw", "psw gprs orig_gpr2 int_code"},
	{"riscv64", elf.EM_RISCV, little, 8, "epc", riscv},
	{"loongarch64", elf.EM_LOONGARCH, little, 8, "csr_era", loongarch},
	{"mips", elf.EM_MIPS, big, 4, "cp0_epc", mips},
	{"mipsel", elf.EM_MIPS, little, 4, "cp0_epc", mips},
	{"mips64", elf.EM_MIPS, big, 8, "cp0_epc", mips},
	{"mips64el", elf.EM_MIPS, little, 8, "cp0_epc", mips},
	{"sparc64", elf.EM_SPARCV9, big, 8, "tpc", "u_regs tpc tnpc tstate"},
}

// Archs returns the architectures of all machines.
func Archs() (archs []string) {
	for i := range All {
		archs = append(archs, All[i].Arch)
	}
	return archs
}

func find(fits func(m *Machine) bool) *Machine {
	for i := range All {
		if fits(&All[i]) {
			return &All[i]
		}
	}
	return nil
}

// Named returns the machine of an architecture in any spelling, nil if it is unknown.
func Named(arch string) *Machine {
	arch = kernel.CanonicalArch(arch)
	return find(func(m *Machine) bool { return m.Arch == arch })
}

// Of returns the machine of a kernel by its BTF and its struct pt_regs, nil if it is unknown.
func Of(b *btf.BTF, regs *btf.Type) *Machine {
	return find(func(m *Machine) bool {
		return m.Order == b.Order() && m.Pointer == b.PointerSize() && b.HasMember(regs, m.Register)
	})
}

const registers = "pt_regs"

var ptRegs = btf.NewNames([]string{registers})

// OfKernel returns the machine of a kernel by its BTF, "" if it is unknown.
func OfKernel(ctx context.Context, b *btf.BTF) string {
	if m := ofAny(b, b.WithName(registers)); m != nil {
		return m.Arch
	}
	if ids, err := b.Find(ctx, ptRegs, 1, nil); err == nil {
		if m := ofAny(b, slices.Values(ids[0])); m != nil {
			return m.Arch
		}
	}
	return ""
}

// ofAny returns the machine of the first of some types that has its registers, nil for none.
func ofAny(b *btf.BTF, ids iter.Seq[btf.TypeID]) *Machine {
	for id := range ids {
		t := b.Type(id)
		if m := Of(b, &t); m != nil {
			return m
		}
	}
	return nil
}

// OfELF returns the architecture of an ELF file, "" if it is unknown.
func OfELF(machine elf.Machine, class elf.Class, data elf.Data) string {
	if m := find(func(m *Machine) bool {
		return m.ELF == machine && (m.Order == little) == (data == elf.ELFDATA2LSB) && (m.Pointer == 8) == (class == elf.ELFCLASS64)
	}); m != nil {
		return m.Arch
	}
	return ""
}

// wide are the 64-bit machines whose kernels also run the programs of a 32-bit machine.
var wide = map[string]string{"i386": "x86_64", "arm": "arm64", "mips": "mips64", "mipsel": "mips64el"}

// Hosts returns the machines whose kernels run programs of an architecture.
func Hosts(arch string) []string {
	switch {
	case arch == "":
		return nil
	case wide[arch] != "":
		return []string{arch, wide[arch]}
	}
	return []string{arch}
}
