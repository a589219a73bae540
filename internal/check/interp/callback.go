// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// A helper that calls a function back before it returns hands it a pointer, mostly to a struct on the caller's stack:
//
//	struct data d = {.sleepable = false};
//	bpf_loop(n, step, &d, 0); // static long step(u32 i, struct data *d)
//
// The verifier follows step as if the helper called it zero, one or several times, with what it knows of the stack. The package
// does the same if no jump is between the load of the function's address and the call of the helper, as in code of compilers.
// Verifiers before 6.7 follow one turn, so nothing is certain in a second one.

// callbackArgs are registers of a helper that calls a function back: those with the function and the pointer for it, and the
// one in which the function gets the pointer.
type callbackArgs struct{ fn, context, param asm.Register }

// callsBack are the helpers that call a function back before they return.
var callsBack = map[asm.BuiltinFunc]callbackArgs{
	asm.FnForEachMapElem:   {asm.R2, asm.R3, asm.R4},
	asm.FnFindVma:          {asm.R3, asm.R4, asm.R3},
	asm.FnLoop:             {asm.R2, asm.R3, asm.R2},
	asm.FnUserRingbufDrain: {asm.R2, asm.R3, asm.R2},
}

// findLoops returns the functions that helpers call back, by the slot of the helper's call and by the slot that loads the
// function's address.
func findLoops(code []bpfobj.Insn, leaders []bool) map[int]int {
	found := make(map[int]int)
	for i := range code {
		load := &code[i]
		if load.Op != bpfobj.OpLdImm64 || load.Ref.Kind() != bpfobj.RefFunc || load.Ref.N() < 0 {
			continue
		}
		for k := i + load.Slots(); k < len(code) && !leaders[k]; k += code[k].Slots() {
			in := &code[k]
			class := in.Op.Class()
			if class.IsJump() {
				if in.IsHelper() && callsBack[asm.BuiltinFunc(in.Imm)].fn == load.Dst {
					found[i], found[k] = load.Ref.N(), load.Ref.N()
				}
				break
			}
			if in.Dst == load.Dst && class != asm.StClass && class != asm.StXClass || in.Src == load.Dst && class == asm.StXClass {
				break // the register changes; a store may be atomic and load its source
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
	s.at.Insn++
	x.turn(x.fork(s), fn, &context)
	s.clobberCall()
	return true
}

// turn has the helper before s.at call a function back.
func (x *explorer) turn(s *state, fn int, context *value) {
	s.clobberCall()
	in := &x.o.Funcs[s.at.Fn].Insns[s.at.Insn-1]
	s.regs[callsBack[asm.BuiltinFunc(in.Imm)].param] = *context
	x.push(s, fn)
	s.frames[len(s.frames)-1].context = context
	x.later(s)
}

// again takes another turn after f, a callback, has returned to s.
func (x *explorer) again(s *state, f *frame) {
	turn := x.fork(s)
	turn.level = max(turn.level, Imprecise)
	x.turn(turn, f.fn, f.context)
	s.regs[asm.R0] = unknown
}
