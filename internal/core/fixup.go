// SPDX-License-Identifier: Apache-2.0

package core

import (
	"errors"
	"math"
	"strconv"

	"github.com/btfgen/btfgen/pkg/relo"
)

// fixup is the result of a relocation on a candidate. Two fixups are the same to
// cilium/ebpf if both values are equal.
type fixup struct {
	poison        bool
	local, target uint64
	id            bool // target is the place of the candidate, for its type ID
	free          bool // the operand is not compared with the local value
	err           error
}

func (f *fixup) failed(k relo.Kind) bool { return f.poison || k.IsExistence() && f.target == 0 }

func (f *fixup) agrees(o *fixup) bool { return f.local == o.local && f.target == o.target }

func (f *fixup) String() string {
	switch {
	case f.poison:
		return "poisoned"
	case f.id:
		return "a type ID"
	}
	return strconv.FormatUint(f.target, 10)
}

// Errors by which cilium/ebpf gives up on a program.
var (
	errAmbiguous   error = fault{Cause: relo.CauseAmbiguous}
	errUnsupported error = fault{Cause: relo.CauseUnsupported}
	errImpossible        = errors.New("impossible relocation") // the candidate does not match; no error of the program
)

// cilium says why cilium/ebpf gives up on changing an instruction, nil where it
// does not (COREFixup.Apply). It changes no width of a load. It cannot read an
// object whose 64-bit loads have fields in the second slot (Instruction.Unmarshal).
func (in insn) cilium(f *fixup) error {
	target := f.target
	if f.id {
		// target holds a place here instead of the ID, which has few bits.
		target = 0
	}
	const swap = 0xd0 // the operation of an ALU instruction
	switch class := in.code & 7; {
	case in.second:
		return errNoImm64
	case f.poison:
	case class == classLDX || class == classST || class == classSTX:
		if !f.free && int64(int16(f.local)) != in.operand {
			return in.holdsNot(f.local)
		}
		if target > math.MaxInt16 {
			return fault{Cause: relo.CauseOffset, TargetNumber: target}
		}
	case class == classLD && (in.code != ldImm64 || in.source):
		return errNoImm64
	case class == classALU && in.code&0xf0 == swap:
		return fault{Cause: relo.CauseSwap}
	case class == classLD, class == classALU, class == classALU64:
		if class != classLD && in.code&srcX != 0 {
			return errNoImmediate
		}
		if !f.free && int64(f.local) != in.operand {
			return in.holdsNot(f.local)
		}
		if class != classLD && target > math.MaxInt32 {
			return fault{Cause: relo.CauseValue, TargetNumber: target}
		}
	default:
		return fault{Cause: relo.CauseInsnClass, LocalNumber: uint64(class)}
	}
	return nil
}
