// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"cmp"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// result is the result of loading a program.
type result struct {
	err    error
	attach string // value of Event.Attach

	// Instructions as the kernel has them, if the program was loaded and there is an archive, or why they cannot be read.
	code   asm.Instructions
	unread error
}

// read reads the instructions of a program that was loaded.
func (r *result) read(p *ebpf.Program) {
	var info *ebpf.ProgramInfo
	if info, r.unread = p.Info(); r.unread == nil {
		r.code, r.unread = info.Instructions()
	}
}

// differs returns how the result with an archive's types differs, "" if it does not. ids are pairs of type IDs that mean the same.
func (r *result) differs(a *result, ids map[typeIDs]bool) string {
	switch {
	case r.err != nil && a.err != nil:
		return ""
	case a.err != nil:
		return fmt.Sprintf("does not load with the archive's BTF: %v", a.err)
	case r.err != nil:
		return "loads only with the archive's BTF"
	case r.attach != a.attach:
		return "with the archive's BTF: " + cmp.Or(a.attach, "not attached")
	case r.unread != nil || a.unread != nil:
		return fmt.Sprintf("cannot be compared: %v", cmp.Or(r.unread, a.unread))
	case len(r.code) != len(a.code):
		return fmt.Sprintf("has %d instructions, and %d with the archive's BTF", len(r.code), len(a.code))
	}
	for i, in := range r.code {
		other := a.code[i]
		if constant(in) == constant(other) || ids[typeIDs{in.Constant, other.Constant}] {
			in.Constant, other.Constant = 0, 0
		}
		if in.OpCode != other.OpCode || in.Dst != other.Dst || in.Src != other.Src ||
			in.Offset != other.Offset || in.Constant != other.Constant {
			return fmt.Sprintf("instruction %d is %v, and %v with the archive's BTF", i, r.code[i], a.code[i])
		}
	}
	return ""
}

// constant returns an instruction's constant without the ID of a map, which each load creates.
func constant(in asm.Instruction) int64 {
	if in.IsLoadFromMap() {
		return in.Constant >> 32 // the offset in the map's value
	}
	return in.Constant
}
