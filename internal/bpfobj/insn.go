// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"encoding/binary"
	"slices"

	"github.com/cilium/ebpf/asm"
)

// Insn is one slot of 8 bytes. The second half of a 64-bit immediate load is an Insn of its own with Op 0: jumps and records
// count slots.
//
// The names are those of package asm. Its decoder merges the halves, moves parts of Off and Imm into the opcode, fails at
// instructions that a verifier refuses only if it reaches them, and takes five times as long (BenchmarkDecode).
type Insn struct {
	Op       asm.OpCode // the byte alone
	Dst, Src asm.Register
	Off      int16
	Record   int32 // 1 + the index of its CO-RE record; 0 for none
	Ref      Ref
	Imm      int64 // sign-extended; all 64 bits of a 64-bit immediate load; of a [RefData], bytes into the section
}

// Ref is what the ELF relocation of an instruction refers to: the kind in its low bits, and an index.
type Ref int32

// RefKind is the kind of a Ref.
type RefKind uint8

// The kinds of references.
const (
	RefNone   RefKind = iota
	RefMap            // a map
	RefData           // an address in a data section; only read-only ones have an index
	RefFunc           // a function of the object
	RefExtern         // a kfunc, ksym or kconfig variable
)

// refBits is the size of a RefKind in a Ref. No limit allows more than 1<<28 things of one kind.
const refBits = 3

// RefTo returns a Ref to number n of a kind, -1 if it is unknown which.
func RefTo(kind RefKind, n int) Ref { return Ref(n<<refBits | int(kind)) }

// Kind returns what r refers to.
func (r Ref) Kind() RefKind { return RefKind(r & (1<<refBits - 1)) }

// N returns the index of the function, map, data section or extern, -1 if it is unknown.
func (r Ref) N() int { return int(r >> refBits) }

// Complete opcodes.
const (
	OpLdImm64 = asm.OpCode(asm.LdClass) | asm.OpCode(asm.ImmMode) | asm.OpCode(asm.DWord)
	OpJa      = asm.OpCode(asm.JumpClass) | asm.OpCode(asm.Ja)
	OpGotol   = asm.OpCode(asm.Jump32Class) | asm.OpCode(asm.Ja) // the offset is in Imm
	OpCall    = asm.OpCode(asm.JumpClass) | asm.OpCode(asm.Call)
	OpExit    = asm.OpCode(asm.JumpClass) | asm.OpCode(asm.Exit)
)

// IsHelper reports whether in calls a helper. Its number is Imm.
func (in *Insn) IsHelper() bool { return in.Op == OpCall && in.Src == 0 && in.Ref.Kind() == RefNone }

// IsFuncCall reports whether in calls a function of the object. Ref refers to it.
func (in *Insn) IsFuncCall() bool {
	return in.Op == OpCall && in.Src == asm.PseudoCall && in.Ref.Kind() != RefExtern
}

// Jump returns the distance of a jump from the next slot. It reports false for other instructions.
func (in *Insn) Jump() (slots int, ok bool) {
	switch in.Op {
	case OpGotol:
		return int(in.Imm), true
	case OpCall, OpExit:
		return 0, false
	}
	return int(in.Off), in.Op.Class().IsJump()
}

// FallsThrough reports whether execution may continue with the next instruction.
func (in *Insn) FallsThrough() bool { return in.Op != OpJa && in.Op != OpGotol && in.Op != OpExit }

// Slots returns the number of slots of in.
func (in *Insn) Slots() int {
	if in.Op == OpLdImm64 {
		return 2
	}
	return 1
}

// decode decodes code. It drops an incomplete slot at the end.
func decode(code []byte, bo binary.ByteOrder) []Insn {
	out := make([]Insn, len(code)/asm.InstructionSize)
	for i := range out {
		b := code[i*asm.InstructionSize:]
		regs := b[1]
		if bo == binary.BigEndian {
			regs = regs>>4 | regs<<4
		}
		out[i] = Insn{
			Op: asm.OpCode(b[0]), Dst: asm.Register(regs & 15), Src: asm.Register(regs >> 4),
			Off: int16(bo.Uint16(b[2:])), Imm: int64(int32(bo.Uint32(b[4:]))),
		}
	}
	for i := range out[:max(0, len(out)-1)] {
		if out[i].Op == OpLdImm64 {
			out[i].Imm = out[i+1].Imm<<32 | int64(uint32(out[i].Imm))
		}
	}
	return out
}

// JumpTargets marks the slots of code that jumps go to.
func JumpTargets(code []Insn) []bool {
	targets := make([]bool, len(code))
	for i := range code {
		if slots, ok := code[i].Jump(); ok && i+1+slots >= 0 && i+1+slots < len(code) {
			targets[i+1+slots] = true
		}
	}
	return targets
}

// BackEdge returns the first instruction of f from which execution may continue with an earlier one that leads to it, -1 if there is
// none: check_cfg in kernel/bpf/verifier.c, without callees.
func (f *Function) BackEdge() int {
	const (
		fallen  = 1 << iota // the next instruction was followed
		jumped              // the jump was followed
		entered             // the instruction is on the current path
	)
	if !slices.ContainsFunc(f.Insns, func(in Insn) bool { slots, jumps := in.Jump(); return jumps && slots < 0 }) {
		return -1
	}
	n := len(f.Insns)
	state, path := make([]uint8, n), []int(nil)
	enter := func(i int) {
		state[i] |= entered
		path = append(path, i)
	}
	if n > 0 {
		enter(0)
	}
	for len(path) > 0 {
		i := path[len(path)-1]
		in, next := &f.Insns[i], -1
		switch slots, jumps := in.Jump(); {
		case state[i]&fallen == 0:
			if state[i] |= fallen; in.FallsThrough() {
				next = i + in.Slots()
			}
		case state[i]&jumped == 0:
			if state[i] |= jumped; jumps {
				next = i + 1 + slots
			}
		default:
			state[i] &^= entered
			path = path[:len(path)-1]
			continue
		}
		switch {
		case next < 0 || next >= n:
		case state[next]&entered != 0:
			return i
		case state[next] == 0:
			enter(next)
		}
	}
	return -1
}
