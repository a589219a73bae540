// SPDX-License-Identifier: Apache-2.0

package bpfobj

import "github.com/cilium/ebpf/asm"

// Group is a group of instructions that were introduced together, after the first kernels with BTF.
type Group uint8

// The groups.
const (
	GroupJMP32 Group = iota
	GroupAtomics
	GroupV4 // cpu v4
	GroupMayGoto
	GroupArena
	GroupAcqRel
	GroupCallback
	NumGroups
)

// Newer is an instruction of a group.
type Newer struct {
	Group  Group
	Name   string
	Static bool // verifiers that do not know it refuse it even if it is not reached
}

// Gotol is the name of the only jump of cpu v4 that was backported to stable kernels such as 6.1.
const Gotol = "gotol"

// Immediates of atomic operations that package asm does not name.
const (
	LoadAcquire  = 0x100
	StoreRelease = 0x110
)

// Newer returns the group of an instruction, false for one that all kernels with BTF know. Verifiers refuse unknown opcodes
// before they follow the code; they refuse a known opcode with an unknown field only if they reach it. The address of a
// function is refused anywhere (resolve_pseudo_ldimm64 in kernel/bpf/verifier.c).
func (in *Insn) Newer() (Newer, bool) {
	switch c := in.Op.Class(); {
	case in.Op == OpLdImm64 && in.Ref.Kind() == RefFunc:
		return Newer{GroupCallback, "address of a function", true}, true
	case in.Op == OpGotol:
		return Newer{GroupV4, Gotol, true}, true
	case c == asm.JumpClass && in.Op.JumpOp() == asm.JCOND:
		return Newer{GroupMayGoto, "may_goto", true}, true
	case c == asm.Jump32Class:
		return Newer{GroupJMP32, "32-bit jump", true}, true
	case c == asm.LdXClass && in.Op.Mode() == asm.MemSXMode:
		return Newer{GroupV4, "sign-extending load", true}, true
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
		return Newer{GroupArena, "addr_space_cast", false}, true
	case op == asm.Mov && in.Op.Source() == asm.RegSource && in.Off != 0:
		return Newer{GroupV4, "sign-extending move", false}, true
	case op == asm.Swap && in.Op.Class() == asm.ALU64Class:
		return Newer{GroupV4, "bswap", true}, true
	case (op == asm.Div || op == asm.Mod) && in.Off != 0:
		return Newer{GroupV4, "signed division", false}, true
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
		return Newer{GroupAcqRel, "load-acquire", narrow}, true
	case StoreRelease:
		return Newer{GroupAcqRel, "store-release", narrow}, true
	}
	return Newer{GroupAtomics, "atomic operation", true}, true
}

// IsAddrSpaceCast reports whether in converts between an arena's address and the kernel's.
func (in *Insn) IsAddrSpaceCast() bool {
	return in.Op == asm.Mov.Op(asm.RegSource) && in.Off == 1
}
