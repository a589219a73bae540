// SPDX-License-Identifier: Apache-2.0

package bpfobj

import "github.com/cilium/ebpf/asm"

// Registers is a set of registers: bit n is register n.
type Registers uint16

func registersOf(list ...asm.Register) (s Registers) {
	for _, r := range list {
		s |= 1 << r
	}
	return s
}

// Has reports whether a register is in s.
func (s Registers) Has(r asm.Register) bool { return s&(1<<r) != 0 }

var (
	arguments = registersOf(asm.R1, asm.R2, asm.R3, asm.R4, asm.R5)
	clobbered = arguments | registersOf(asm.R0)
)

// Touches returns the registers that an instruction may read, and those that it overwrites.
func (in *Insn) Touches() (reads, writes Registers) {
	dst, src := registersOf(in.Dst), registersOf(in.Src)
	switch in.Op.Class() {
	case asm.ALUClass, asm.ALU64Class:
		if in.Op.Source() == asm.RegSource {
			reads = src
		}
		if in.Op.ALUOp() == asm.Mov {
			return reads, dst
		}
		return reads | dst, 0
	case asm.LdClass:
		if in.Op == OpLdImm64 {
			return 0, dst
		}
		return src | registersOf(asm.R6), clobbered
	case asm.LdXClass:
		return src, dst
	case asm.StClass:
		return dst, 0
	case asm.StXClass:
		return dst | src | registersOf(asm.R0), 0
	}
	switch in.Op {
	case OpCall:
		return arguments, clobbered
	case OpExit:
		return registersOf(asm.R0), 0
	}
	return dst | src, 0
}
