// SPDX-License-Identifier: Apache-2.0

package bpfobj

import "github.com/cilium/ebpf/asm"

// Newer is an instruction that came after the first kernels with BTF.
type Newer struct {
	Name   string
	Static bool // verifiers that do not know it refuse it even if it is not reached
	V4     bool // new in cpu v4
	Atomic bool // an atomic operation, newer than the first
}

// Immediates of atomic operations that package asm does not name.
const (
	LoadAcquire  = 0x100
	StoreRelease = 0x110
)

// Newer describes an instruction, false for one that all kernels with BTF know. Verifiers refuse unknown opcodes
// before they follow the code; they refuse a known opcode with an unknown field only if they reach it. The address of a
// function is refused anywhere (resolve_pseudo_ldimm64 in kernel/bpf/verifier.c).
func (in *Insn) Newer() (Newer, bool) {
	switch c := in.Op.Class(); {
	case in.Op == OpLdImm64 && in.Ref.Kind() == RefFunc:
		return Newer{Name: "address of a function", Static: true}, true
	case in.Op == OpGotol:
		return Newer{Name: "gotol", Static: true, V4: true}, true
	case c == asm.JumpClass && in.Op.JumpOp() == asm.JCOND:
		return Newer{Name: "may_goto", Static: true}, true
	case c == asm.Jump32Class:
		return Newer{Name: "32-bit jump", Static: true}, true
	case c == asm.LdXClass && in.Op.Mode() == asm.MemSXMode:
		return Newer{Name: "sign-extending load", Static: true, V4: true}, true
	case c == asm.StXClass && in.Op.Mode() == asm.AtomicMode:
		return in.atomic()
	case c.IsALU():
		return in.newerALU()
	}
	return Newer{}, false
}

func (in *Insn) newerALU() (Newer, bool) {
	op := in.Op.ALUOp()
	switch {
	case in.IsAddrSpaceCast():
		return Newer{Name: "addr_space_cast"}, true
	case op == asm.Mov && in.Op.Source() == asm.RegSource && in.Off != 0:
		return Newer{Name: "sign-extending move", V4: true}, true
	case op == asm.Swap && in.Op.Class() == asm.ALU64Class:
		return Newer{Name: "bswap", Static: true, V4: true}, true
	case (op == asm.Div || op == asm.Mod) && in.Off != 0:
		return Newer{Name: "signed division", V4: true}, true
	}
	return Newer{}, false
}

// atomic is Newer for an atomic operation. An addition without a result is as old as BPF.
func (in *Insn) atomic() (Newer, bool) {
	narrow := in.Op.Size() == asm.Byte || in.Op.Size() == asm.Half
	switch in.Imm {
	case 0:
		return Newer{}, false
	case LoadAcquire:
		return Newer{Name: "load-acquire", Static: narrow, Atomic: true}, true
	case StoreRelease:
		return Newer{Name: "store-release", Static: narrow, Atomic: true}, true
	}
	return Newer{Name: "atomic operation", Static: true}, true
}

// IsAddrSpaceCast reports whether in converts between an arena's address and the kernel's.
func (in *Insn) IsAddrSpaceCast() bool {
	return in.Op == asm.Mov.Op(asm.RegSource) && in.Off == 1
}
