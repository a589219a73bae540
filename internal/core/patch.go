// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/binary"
	"math"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Errors about instructions.
var (
	errNoImmediate error = fault{Cause: relo.CauseNoImmediate}
	errNoImm64     error = fault{Cause: relo.CauseNoImm64}
)

// insn is the part of an instruction that a loader's decision depends on.
type insn struct {
	ok      bool // the section holds the instruction
	code    uint8
	operand int64 // offset of a load or store, immediate of others

	// Of a 64-bit load. A source register says that the operand is not a constant.
	source bool // the source register or the offset is not zero
	second bool // the second slot is missing, or has more than an operand
}

const insnSize = 8 // struct bpf_insn, bytes

func readInsn(code []byte, off uint32, order binary.ByteOrder) insn {
	if uint64(off)+insnSize > uint64(len(code)) {
		return insn{}
	}
	code = code[off:]
	in := insn{ok: true, code: code[0], operand: int64(int32(order.Uint32(code[4:])))}
	switch class := in.code & 7; {
	case class == classLDX || class == classST || class == classSTX:
		in.operand = int64(int16(order.Uint16(code[2:])))
	case in.code == ldImm64:
		source := code[1] >> 4
		if order == binary.ByteOrder(binary.BigEndian) {
			source = code[1] & 0xf
		}
		in.source = source != 0 || order.Uint16(code[2:]) != 0
		if in.second = len(code) < 2*insnSize || order.Uint32(code[insnSize:]) != 0; !in.second {
			in.operand = int64(order.Uint32(code[4:])) | int64(order.Uint32(code[insnSize+4:]))<<32
		}
	}
	return in
}

// holds returns an error if the operand is not the local value. Linkers and
// compilers may change some operands.
func (in insn) holds(l value) error {
	if l.exact && uint64(in.operand) != l.val {
		return in.holdsNot(l.val)
	}
	return nil
}

// holdsNot is the error for an operand that is not the local value.
func (in insn) holdsNot(local uint64) error {
	return fault{Cause: relo.CauseOperand, LocalNumber: uint64(in.operand), TargetNumber: local}
}

// width returns the bytes that are loaded or stored.
func (in insn) width() uint32 { return [...]uint32{4, 2, 1, 8}[in.code>>3&3] }

// Classes and modes of BPF instructions.
const (
	classLD    = 0x00
	classLDX   = 0x01
	classST    = 0x02
	classSTX   = 0x03
	classALU   = 0x04
	classALU64 = 0x07
	ldImm64    = 0x18 // BPF_LD | BPF_IMM | BPF_DW
	srcX       = 0x08
)

// patch decides whether libbpf can patch the instruction with the target's value
// (bpf_core_patch_insn). It returns why it is poisoned, or an error that ends the
// load.
func (in insn) patch(l, t value) (poison, err error) {
	if !in.ok {
		return nil, nil
	}
	switch class := in.code & 7; class {
	case classLDX, classST, classSTX:
		if err := in.holds(l); err != nil {
			return nil, err
		}
		if t.val > math.MaxInt16 {
			return nil, fault{Cause: relo.CauseOffset, TargetNumber: t.val}
		}
		if l.load.size == t.load.size { // both are 0 for bitfields, whose loads keep their width
			return nil, nil
		}
		if !resizable(l.load, t.load) {
			f := fault{Cause: relo.CauseFieldSize, LocalNumber: uint64(l.load.size), TargetNumber: uint64(t.load.size)}
			if l.load.ok != t.load.ok {
				f.Cause = relo.CauseBitfield
			}
			return f, nil
		}
		if n := in.width(); n != l.load.size {
			return nil, fault{Cause: relo.CauseInsnSize, LocalNumber: uint64(n), TargetNumber: uint64(l.load.size)}
		}
		if n := t.load.size; n != 1 && n != 2 && n != 4 && n != 8 {
			return nil, fault{Cause: relo.CauseLoadSize, TargetNumber: uint64(n)}
		}
	case classALU, classALU64:
		if in.code&srcX != 0 {
			return nil, errNoImmediate
		}
		return nil, in.holds(l)
	case classLD:
		if in.code != ldImm64 || in.source || in.second {
			return nil, errNoImm64
		}
		return nil, in.holds(l)
	default:
		return nil, fault{Cause: relo.CauseInsnClass, LocalNumber: uint64(class)}
	}
	return nil, nil
}

// resizable reports whether a load or store can be changed from the local size to
// the target's: both are pointers, or both are integers that can be zero-extended.
func resizable(l, t load) bool {
	switch {
	case l.kind != t.kind:
		return false
	case l.kind == btf.KindPtr:
		return true
	case l.kind == btf.KindInt:
		return l.enc != btf.IntSigned && t.enc != btf.IntSigned
	}
	return false
}
