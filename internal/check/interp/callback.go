// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// A helper that calls a function back before it returns hands it a pointer, mostly to a struct on the caller's stack:
//
//	struct data d = {.sleepable = false};
//	bpf_loop(n, step, &d, 0); // static long step(u32 i, struct data *d)
//
// The verifier follows step as if the helper called it zero, one or several times, with what it knows of the stack. The package
// does the same if no jump is between the load of the function's address and the call of the helper, as in code of compilers.
// Verifiers before 6.7 follow one turn, so nothing is certain in a second one.

// findLoops returns the functions that helpers call back, by the slot of the helper's call and by the slot that loads the
// function's address.
func findLoops(code []bpfobj.Insn, leaders []bool) map[int]int {
	found := make(map[int]int)
	EachCallback(code, leaders, func(load, call int) {
		in := &code[call]
		if c := facts.HelperNumbered(in.Imm).CallsBack; in.IsHelper() && c != nil && c.Fn == code[load].Dst {
			found[load], found[call] = code[load].Ref.N(), code[load].Ref.N()
		}
	})
	return found
}

// EachCallback calls f with the slot of each instruction that loads the address of a function into a register which then no other instruction
// changes, and the slot of the jump or call that comes next. No other code jumps to what is between them.
func EachCallback(code []bpfobj.Insn, leaders []bool, f func(load, call int)) {
	for i := range code {
		load := &code[i]
		if load.Op != bpfobj.OpLdImm64 || load.Ref.Kind() != bpfobj.RefFunc || load.Ref.N() < 0 {
			continue
		}
		for k := i + load.Slots(); k < len(code) && !leaders[k]; k += code[k].Slots() {
			in := &code[k]
			class := in.Op.Class()
			if class.IsJump() {
				f(i, k)
				break
			}
			// A store changes no register, except that an atomic one may load its source.
			store := class == asm.StClass || class == asm.StXClass
			if in.Dst == load.Dst && !store || in.Src == load.Dst && class == asm.StXClass {
				break
			}
		}
	}
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
	in := &x.object.Funcs[s.at.Fn].Insns[s.at.Insn-1]
	s.regs[facts.HelperNumbered(in.Imm).CallsBack.Param] = *context
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
