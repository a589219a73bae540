// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"cmp"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/limits"
)

// jump executes an instruction of the jump classes.
func (x *explorer) jump(s *state, in *bpfobj.Insn) bool {
	switch in.Op {
	case bpfobj.OpJa, bpfobj.OpGotol:
		s.jump(in)
		return true
	case bpfobj.OpCall:
		return x.call(s, in)
	case bpfobj.OpExit:
		return x.exit(s)
	}
	return x.branch(s, in)
}

// jump continues at the target of in.
func (s *state) jump(in *bpfobj.Insn) {
	slots, _ := in.Jump()
	s.at.Insn += 1 + slots
}

// arrive notes a state where paths can meet. It reports false if an earlier visit covers it. Too many visits are merged, and s
// with them.
func (x *explorer) arrive(s *state) bool {
	x.forgetDead(s)
	here := place{s.at, s.calls()}
	list := x.visits[here]
	most := limits.States
	if x.in.Precise || x.code.ends[s.at.Insn] {
		most = limits.PreciseStates
	} else if len(list) >= limits.ConstantStates {
		s.widen()
	}
	merged := -1
	for i := range list {
		v := &list[i]
		switch {
		case v.merged:
			merged = i
		case v.state.level <= s.level && x.covers(v.state, s):
			return false
		}
	}
	if merged >= 0 && x.covers(list[merged].state, s) {
		return false
	}
	if merged < 0 && len(list) < most {
		x.visits[here] = append(list, visit{state: x.keep(s)})
		return true
	}
	for _, v := range list {
		if v.merged || merged < 0 {
			x.spend(s.slots() + v.state.slots())
			s.merge(v.state, x.countBoth)
		}
	}
	if v := (visit{state: x.keep(s), merged: true}); merged >= 0 {
		x.bytes -= list[merged].state.size()
		list[merged] = v
	} else {
		x.visits[here] = append(list, v)
	}
	return true
}

// covers reports whether a covers b.
func (x *explorer) covers(a, b *state) bool {
	ok, looks := a.covers(b, x.countBoth)
	x.spend(looks)
	return ok
}

// keep returns a copy of s for visits.
func (x *explorer) keep(s *state) *state {
	x.bytes += s.size()
	return x.fork(s)
}

// branch follows both sides of a conditional jump, or one if it is decided.
func (x *explorer) branch(s *state, in *bpfobj.Insn) bool {
	is32 := in.Op.Class() == asm.Jump32Class
	op := in.Op.JumpOp()
	a, b := s.reg(in.Dst), constant(uint64(in.Imm))
	if isRegister(in) {
		b = s.reg(in.Src)
	}
	if op == asm.JCOND { // may_goto reads no register
		a, b = unknown, unknown
	}
	x.counts(a)
	x.counts(b)
	if src := cmp.Or(a.src, b.src); src == 0 {
		delete(x.here.decided, int32(s.at.Insn))
	} else {
		if x.here.decided == nil {
			x.here.decided = make(map[int32]int32)
		}
		x.here.decided[int32(s.at.Insn)] = src
	}
	switch x.decide(s, in, op, a, b, is32) {
	case always:
		s.jump(in)
		return true
	case never:
		s.at.Insn++
		return true
	}
	if (a.taint || b.taint) && s.level < Depends {
		s.level = Depends
	}
	if (a.lost || b.lost) && !a.mayBeZero(op, b) {
		s.doubt()
	}
	yes := x.fork(s)
	yes.jump(in)
	if op != asm.JCOND {
		x.refine(yes, op, in, a, b, is32)
		x.refine(s, negated(op), in, a, b, is32)
	}
	x.later(yes)
	s.at.Insn++
	return true
}

// decide decides a conditional jump as far as the verifier does. Where only some verifiers without Constants do, the level of s
// becomes Imprecise.
func (x *explorer) decide(s *state, in *bpfobj.Insn, op asm.JumpOp, a, b value, is32 bool) verdict {
	v := compare(op, a, b, is32)
	switch {
	case v == either:
	case a.kind != scalar && a.kind != nonZero:
		if !x.knows(NonNull) {
			return either
		}
	case (isRegister(in) || op != asm.JEq && op != asm.JNE) && !x.knows(Constants):
		if !isRegister(in) && op != asm.JSet {
			s.doubt()
		}
		return either
	}
	return v
}

// refine notes in s what follows if a comparison of a and b holds.
func (x *explorer) refine(s *state, op asm.JumpOp, in *bpfobj.Insn, a, b value, is32 bool) {
	switch {
	case a.kind != scalar || b.kind != scalar:
	case isRegister(in) && in.Dst == in.Src:
		if op == asm.JNE || op == asm.JGT || op == asm.JLT || op == asm.JSGT || op == asm.JSLT {
			s.write(in.Dst, unknown) // impossible, which 6.8 to 6.18 do not notice: see where
		}
	case b.isConst():
		s.learn(in.Dst, a.where(op, b.bits, is32))
	case a.isConst():
		s.learn(in.Src, b.where(flipped(op), a.bits, is32))
	case op == asm.JEq && !a.meets(b, is32):
		s.write(in.Dst, unknown)
		s.write(in.Src, unknown)
	default:
		s.closeGaps(a.gaps | b.gaps)
	}
}

// maxFrames is the verifier's limit on nested calls.
const maxFrames = 8

func (x *explorer) call(s *state, in *bpfobj.Insn) bool {
	if in.IsFuncCall() {
		return x.callFunc(s, in.Ref.N())
	}
	if fn, ok := x.code.loops[s.at.Insn]; ok {
		if context := s.reg(facts.HelperNumbered(in.Imm).CallsBack.Context); context.isStack() {
			return x.callBack(s, fn, context)
		}
		x.callback(s, fn)
	}
	x.giveSizes(s, in)
	x.helperWrites(s, in)
	s.clobberCall()
	s.regs[asm.R0] = x.number()
	s.at.Insn++
	return true
}

// callFunc calls a function of the object.
func (x *explorer) callFunc(s *state, fn int) bool {
	if fn < 0 {
		x.summary.odd = UnnamedCall
		return false
	}
	if x.object.Funcs[fn].Global && x.knows(Globals) {
		if x.knows(LazyGlobals) {
			x.enter(s, fn)
		}
		for r := asm.R1; r <= asm.R5; r++ {
			if v := s.regs[r]; v.isStack() {
				s.forgetAll(v)
			}
		}
		s.clobberCall()
		s.at.Insn++
		return true
	}
	if x.frames+len(s.frames) >= maxFrames {
		return x.tooDeep()
	}
	s.closeGaps(allGaps) // the function may compare copies of the caller's numbers
	if from, ok := x.arguments(s, fn); ok {
		return x.callSummarized(s, from)
	}
	s.at.Insn++
	x.push(s, fn)
	return true
}

// push enters a function, which returns to s.at.
func (x *explorer) push(s *state, fn int) {
	f := frame{ret: s.at, fn: fn}
	copy(f.saved[:], s.regs[asm.R6:])
	s.frames = append(s.frames, f)
	x.summary.depth = max(x.summary.depth, len(s.frames))
	s.regs[asm.R0] = unknown
	for r := asm.R6; r <= asm.R9; r++ {
		s.regs[r] = unknown
	}
	s.at = bpfobj.Site{Fn: fn}
}

// tooDeep ends a path at a call. Other callers of the function may nest less deeply, so its summary is not whole.
func (x *explorer) tooDeep() bool {
	x.summary.odd, x.whole = CallsNest, false
	return false
}

// callSummarized continues after a call, once for each way in which the function returns.
func (x *explorer) callSummarized(s *state, from Entry) bool {
	sum, whole := x.summarize(from, len(s.frames))
	if !whole {
		x.unfinished = append(x.unfinished, sum.relevant)
		return x.within() && x.tooDeep()
	}
	x.spend(len(x.summary.uses))
	x.summary.call(sum, s.level, len(s.frames))
	s.clobberCall()
	s.at.Insn++
	for i, e := range sum.exits {
		t := s
		if i < len(sum.exits)-1 {
			t = x.fork(s)
			x.later(t)
		}
		t.level, t.regs[asm.R0] = max(s.level, e.level), e.r0
	}
	return len(sum.exits) > 0
}

// exit returns from a function.
func (x *explorer) exit(s *state) bool {
	n, insn := len(s.frames)-1, s.at.Insn
	f := s.frames[n]
	s.frames = s.frames[:n]
	for r := asm.R1; r <= asm.R5; r++ {
		s.regs[r] = unknown
	}
	copy(s.regs[asm.R6:], f.saved[:])
	s.bury()
	if n == 0 {
		x.leave(s, insn)
		return false
	}
	s.at = f.ret
	if f.context != nil {
		x.again(s, &f)
	}
	return true
}

// leave notes a way in which the function returns. Too many are merged.
func (x *explorer) leave(s *state, insn int) {
	r0, l := s.regs[asm.R0], s.level
	if r0.src < 0 {
		r0.src = 0 // each summary numbers its origins
	}
	x.counts(r0)
	if r0.lost {
		l = max(l, Imprecise)
	}
	exits := x.summary.exits
	for i := range exits {
		if e := &exits[i]; e.r0 == r0 {
			e.level = min(e.level, l)
			return
		}
	}
	if x.spend(len(exits)); len(exits) == limits.PreciseStates {
		e := &exits[len(exits)-1]
		x.counts(e.r0)
		e.r0, e.level = join(e.r0, r0), Imprecise
		return
	}
	x.summary.exits = append(exits, exit{r0, l, int32(insn)})
}

// helperWrites forgets the part of the stack that a helper or kfunc may write: the size in the argument after the pointer, or
// everything above the pointer.
func (x *explorer) helperWrites(s *state, in *bpfobj.Insn) {
	last, callback := asm.R5, false
	if in.IsHelper() {
		h := facts.HelperNumbered(in.Imm)
		callback = h.CallsBack != nil || h.CallsLate
		switch h.Writes {
		case facts.WritesNone:
			return
		case facts.WritesFirst:
			last = asm.R1
		}
	}
	for r := asm.R1; r <= last; r++ {
		p := s.regs[r]
		switch {
		case !p.isStack():
		case callback && s.spilled(): // the callback may write through a pointer there
			s.forgetAll(value{kind: stackAny})
		case callback || p.kind == stackAny:
			s.forgetAll(p)
		case in.IsHelper() && r < asm.R5 && s.regs[r+1].lost:
			s.doubt()
			s.frames[p.base].forget(int64(p.bits), 512)
		case in.IsHelper() && r < asm.R5 && s.regs[r+1].isConst():
			x.counts(s.regs[r+1])
			// Helpers without a size argument write at most 16 bytes.
			n := max(16, min(512, s.regs[r+1].bits))
			s.frames[p.base].forget(int64(p.bits), int64(n))
		default:
			s.frames[p.base].forget(int64(p.bits), 512)
		}
	}
}
