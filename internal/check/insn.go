package check

import "encoding/binary"

// insn is one BPF instruction. The second half of a 64-bit immediate load is
// an instruction of its own with op 0.
type insn struct {
	op       uint8
	dst, src uint8
	off      int16
	imm      int32
	imm64    int64 // of a 64-bit immediate load
	ref      ref
}

// ref is what the ELF relocation of an instruction refers to.
type ref struct {
	kind refKind
	name string // of a map, data section or extern
	off  int64  // into the data section, bytes
	fn   int    // index of a function, -1 when it is not known
}

type refKind uint8

const (
	refNone   refKind = iota
	refMap            // a map
	refData           // an address in a data section
	refFunc           // a function of the object
	refExtern         // kfunc, ksym or kconfig variable
)

// Parts of the opcode.
const (
	classLD    = 0x00
	classLDX   = 0x01
	classST    = 0x02
	classSTX   = 0x03
	classALU   = 0x04
	classJMP   = 0x05
	classJMP32 = 0x06
	classALU64 = 0x07

	opLdImm64 = 0x18
	opJA      = 0x05
	opJA32    = 0x06 // gotol: the offset is in imm
	opCall    = 0x85
	opExit    = 0x95

	srcReg = 0x08

	pseudoCall      = 1 // src of a call: another function
	pseudoKfuncCall = 2
	pseudoFunc      = 4 // src of a 64-bit immediate load: address of a function

	modeMem   = 0x60
	modeMemSX = 0x80
)

func (in *insn) class() uint8 { return in.op & 7 }

// memSize returns the bytes of a load or store.
func (in *insn) memSize() int {
	switch in.op & 0x18 {
	case 0x00:
		return 4
	case 0x08:
		return 2
	case 0x10:
		return 1
	}
	return 8
}

// isCondJump reports whether in is a conditional jump.
func (in *insn) isCondJump() bool {
	if c := in.class(); c != classJMP && c != classJMP32 {
		return false
	}
	return in.op != opJA && in.op != opJA32 && in.op != opCall && in.op != opExit
}

// isHelper reports whether in calls a helper, whose number is imm.
func (in *insn) isHelper() bool { return in.op == opCall && in.src == 0 && in.ref.kind == refNone }

const insnSize = 8 // bytes

func decode(code []byte, bo binary.ByteOrder) []insn {
	out := make([]insn, len(code)/insnSize)
	for i := range out {
		b := code[i*insnSize:]
		regs := b[1]
		if bo == binary.BigEndian {
			regs = regs>>4 | regs<<4
		}
		out[i] = insn{op: b[0], dst: regs & 15, src: regs >> 4, off: int16(bo.Uint16(b[2:])), imm: int32(bo.Uint32(b[4:]))}
	}
	for i := range out {
		if out[i].op == opLdImm64 && i+1 < len(out) {
			out[i].imm64 = int64(out[i+1].imm)<<32 | int64(uint32(out[i].imm))
		}
	}
	return out
}
