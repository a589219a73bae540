// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfprog"
)

// A helper that calls a function back before it returns hands it a pointer of its caller's, mostly to a struct on the stack:
//
//	struct data d = {.sleepable = false};
//	bpf_loop(n, step, &d, 0); // static long step(u32 i, struct data *d)
//
// The verifier knows what is on the stack, and goes through step as if the helper called it no, one or several times. So does the
// package where the address of the function and the call of the helper are in one run of instructions without jumps, as compilers
// leave them. Verifiers before Linux 6.7 take one turn, so that nothing is certain of a second one.

// callbackArgs are the registers of a helper that calls a function back: of the function and of the pointer for it, and where the
// function gets that.
type callbackArgs struct{ fn, context, param asm.Register }

// callsBack are the helpers that call a function back before they return.
var callsBack = map[asm.BuiltinFunc]callbackArgs{
	asm.FnForEachMapElem:   {asm.R2, asm.R3, asm.R4},
	asm.FnFindVma:          {asm.R3, asm.R4, asm.R3},
	asm.FnLoop:             {asm.R2, asm.R3, asm.R2},
	asm.FnUserRingbufDrain: {asm.R2, asm.R3, asm.R2},
}

// loops are the functions that helpers call back, by the slot of the helper's call, and by that where their address is loaded.
type loops map[int]int

// findLoops finds the calls of helpers for which the address of a function is loaded before, with nothing between that jumps, may be
// jumped to or changes the register.
func findLoops(code []bpfprog.Insn, leaders []bool) loops {
	found := make(loops)
	for i := range code {
		load := &code[i]
		if load.Op != bpfprog.OpLdImm64 || load.Ref.Kind != bpfprog.RefFunc || load.Ref.N < 0 {
			continue
		}
		for k := i + load.Slots(); k < len(code) && !leaders[k]; k += code[k].Slots() {
			in := &code[k]
			class := in.Op.Class()
			if class.IsJump() {
				if in.IsHelper() && callsBack[asm.BuiltinFunc(in.Imm)].fn == load.Dst {
					found[i], found[k] = int(load.Ref.N), int(load.Ref.N)
				}
				break
			}
			if in.Dst == load.Dst && class != asm.StClass && class != asm.StXClass || in.Src == load.Dst && class == asm.StXClass {
				break // a store may be atomic and load its source
			}
		}
	}
	return found
}

// callBack follows a helper that calls a function back with a pointer to the stack.
func (x *explorer) callBack(s *state, fn int, context value) bool {
	if x.frames+len(s.frames) >= maxFrames {
		return x.tooDeep()
	}
	turn, bytes := s.clone()
	x.bytes += bytes
	turn.at.Insn++
	x.turn(turn, fn, &context)
	s.clobberCall()
	s.at.Insn++
	return true
}

// turn has a helper, which returns to s.at, call a function back.
func (x *explorer) turn(s *state, fn int, context *value) {
	s.clobberCall()
	in := &x.o.Funcs[s.at.Fn].Insns[s.at.Insn-1]
	s.regs[callsBack[asm.BuiltinFunc(in.Imm)].param] = *context
	x.push(s, fn)
	s.frames[len(s.frames)-1].context = context
	x.later(s)
}

// again takes another turn after one that has returned to s, if it was one.
func (x *explorer) again(s *state, f *frame) {
	if f.context == nil {
		return
	}
	turn, bytes := s.clone()
	x.bytes += bytes
	turn.level = max(turn.level, Imprecise)
	x.turn(turn, f.fn, f.context)
	s.regs[asm.R0] = unknown
}
