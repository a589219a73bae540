// SPDX-License-Identifier: Apache-2.0

// Package machine tells which machine BTF and BPF objects are for: a kernel's by its struct pt_regs, an
// object's by its file's name, by the program that embeds it, or by the registers that its relocations read.
//
// A machine is an architecture in the canonical spelling of pkg/kernel: "x86_64", "arm64".
package machine

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"iter"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Machine is an architecture whose kernels have BTF.
type Machine struct {
	Arch     string // in canonical spelling
	Register string // member of the kernel's struct pt_regs that others of this byte order and pointer lack
	Order    binary.ByteOrder
	Pointer  uint32 // bytes

	// Registers are the members of pt_regs, user_pt_regs or user_regs_struct that programs read, as
	// bpf_tracing.h and the kernel call them, separated by spaces; "" if they do not identify the machine.
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

// all are the machines. Of several with the same register, byte order and size of a pointer make the
// difference. The first comes first where several fit.
var all = []Machine{
	{"x86_64", "r15", little, 8, x86},
	{"i386", "bx", little, 4, ""}, // programs for it cannot be told from those for x86_64
	{"arm64", "pstate", little, 8, "regs sp pc pstate orig_x0 syscallno"},
	{"arm", "uregs", little, 4, "uregs"},
	{"ppc64le", "nip", little, 8, powerpc},
	{"ppc64", "nip", big, 8, powerpc},
	{"s390x", "psw", big, 8, "psw gprs orig_gpr2 int_code"},
	{"riscv64", "epc", little, 8, riscv},
	{"loongarch64", "csr_era", little, 8, loongarch},
	{"mips", "cp0_epc", big, 4, mips},
	{"mipsel", "cp0_epc", little, 4, mips},
	{"mips64", "cp0_epc", big, 8, mips},
	{"mips64el", "cp0_epc", little, 8, mips},
	{"sparc64", "tpc", big, 8, "u_regs tpc tnpc tstate"},
}

// Archs returns the architectures of all machines.
func Archs() []string {
	archs := make([]string, len(all))
	for i := range all {
		archs[i] = all[i].Arch
	}
	return archs
}

// Named returns the machine of an architecture in any spelling, nil for one that is not known.
func Named(arch string) *Machine {
	arch = kernel.CanonicalArch(arch)
	for i := range all {
		if all[i].Arch == arch {
			return &all[i]
		}
	}
	return nil
}

// OrderOf returns the byte order of a machine, nil if it is not known.
func OrderOf(arch string) binary.ByteOrder {
	if m := Named(arch); m != nil {
		return m.Order
	}
	return nil
}

// All returns every machine.
func All() iter.Seq[*Machine] {
	return func(yield func(*Machine) bool) {
		for i := range all {
			if !yield(&all[i]) {
				return
			}
		}
	}
}

// Of returns the machine of a kernel by its BTF and its struct pt_regs, nil if that does not tell.
func Of(b *btf.BTF, regs *btf.Type) *Machine {
	for i := range all {
		m := &all[i]
		if m.Order == b.Order() && m.Pointer == b.PointerSize() && b.HasMember(regs, m.Register) {
			return m
		}
	}
	return nil
}

var ptRegs = btf.NewNames([]string{"pt_regs"})

// OfKernel returns the machine of a kernel by its BTF, "" if that does not tell.
func OfKernel(ctx context.Context, b *btf.BTF) string {
	ids, err := b.Find(ctx, ptRegs, 1, nil)
	if err != nil {
		return ""
	}
	for _, id := range ids[0] {
		t := b.Type(id)
		if m := Of(b, &t); m != nil {
			return m.Arch
		}
	}
	return ""
}

// OfELF returns the architecture of an ELF file, "" for one that is not known.
func OfELF(m elf.Machine, class elf.Class, data elf.Data) string {
	little, wide := data == elf.ELFDATA2LSB, class == elf.ELFCLASS64
	pick := func(cond bool, yes, no string) string {
		if cond {
			return yes
		}
		return no
	}
	switch m {
	case elf.EM_X86_64:
		return "x86_64"
	case elf.EM_386:
		return "i386"
	case elf.EM_AARCH64:
		return "arm64"
	case elf.EM_ARM:
		return "arm"
	case elf.EM_S390:
		return "s390x"
	case elf.EM_PPC64:
		return pick(little, "ppc64le", "ppc64")
	case elf.EM_RISCV:
		return pick(wide, "riscv64", "")
	case elf.EM_LOONGARCH:
		return pick(wide, "loongarch64", "")
	case elf.EM_MIPS:
		return "mips" + pick(wide, "64", "") + pick(little, "el", "")
	case elf.EM_SPARCV9:
		return "sparc64"
	}
	return ""
}

// Hosts returns the machines whose kernels run programs of an architecture: 64-bit kernels also run those of
// their 32-bit sibling.
func Hosts(arch string) []string {
	wide := map[string]string{"i386": "x86_64", "arm": "arm64", "mips": "mips64", "mipsel": "mips64el"}
	switch {
	case arch == "":
		return nil
	case wide[arch] != "":
		return []string{arch, wide[arch]}
	}
	return []string{arch}
}
