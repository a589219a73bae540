package check

import "hash/maphash"

// jump executes an instruction of the jump classes.
func (x *explorer) jump(s *state, in *insn) bool {
	switch {
	case in.op == opJA:
		return x.to(s, s.at.insn+1+int(in.off))
	case in.op == opJA32:
		return x.to(s, s.at.insn+1+int(in.imm))
	case in.op == opCall:
		return x.call(s, in)
	case in.op == opExit:
		return x.exit(s)
	}
	return x.branch(s, in)
}

// to goes on at instruction i of the same function.
func (x *explorer) to(s *state, i int) bool {
	s.at.insn = i
	return true
}

var seed = maphash.MakeSeed()

// calls is a hash of the calls that lead to s.
func (s *state) calls() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range s.frames {
		maphash.WriteComparable(&h, s.frames[i].ret)
		maphash.WriteComparable(&h, s.frames[i].fn)
	}
	return h.Sum64()
}

// arrive notes a state where paths can meet. It reports false where earlier
// visits cover it. Where there are too many they are merged, and s with them.
func (x *explorer) arrive(s *state) bool {
	calls := s.calls()
	list := x.visits[s.at]
	n, merged := 0, -1
	for i := range list {
		v := &list[i]
		switch {
		case v.calls != calls:
		case v.merged:
			merged = i
		case v.s.level <= s.level && v.s.covers(s):
			return false
		default:
			n++
		}
	}
	if merged >= 0 && list[merged].s.covers(s) {
		return false
	}
	if merged < 0 && n < maxStates {
		x.visits[s.at] = append(list, visit{s: s.clone(), calls: calls})
		return true
	}
	for _, v := range list {
		if v.calls == calls && (v.merged || merged < 0) {
			s.merge(v.s)
		}
	}
	if v := (visit{s: s.clone(), calls: calls, merged: true}); merged >= 0 {
		list[merged] = v
	} else {
		x.visits[s.at] = append(list, v)
	}
	return true
}

// branch follows a conditional jump, on both sides unless it is decided.
func (x *explorer) branch(s *state, in *insn) bool {
	is32 := in.class() == classJMP32
	a, b := s.reg(in.dst), constant(uint64(int64(in.imm)))
	if in.op&srcReg != 0 {
		b = s.reg(in.src)
	}
	op := in.op & 0xf0
	if op == 0xe0 { // may_goto
		op = 0x40
		a, b = unknown, unknown
	}
	d := x.taken[s.at]
	if d == nil {
		d = new(decision)
		x.taken[s.at] = d
	}
	target := s.at.insn + 1 + int(in.off)
	switch compare(op, a, b, is32) {
	case always:
		d.note(true, false, a, b)
		return x.to(s, target)
	case never:
		d.note(false, true, a, b)
		return x.to(s, s.at.insn+1)
	}
	d.note(true, true, a, b)
	if (a.taint || b.taint) && s.level < depends {
		s.level = depends
	}
	yes := s.clone()
	yes.refine(op, in, b, is32, true)
	s.refine(op, in, b, is32, false)
	x.to(yes, target)
	x.work = append(x.work, yes)
	return x.to(s, s.at.insn+1)
}

func (d *decision) note(yes, no bool, a, b value) {
	d.yes, d.no = d.yes || yes, d.no || no
	if d.src = a.src; d.src == 0 {
		d.src = b.src
	}
}

// refine notes what a comparison with a constant tells: on the equal side, a
// register has that value.
func (s *state) refine(op uint8, in *insn, b value, is32, taken bool) {
	if !b.isConst() || in.dst > 9 || s.regs[in.dst].kind != scalar {
		return
	}
	if equal := op == 0x10 && taken || op == 0x50 && !taken; !equal {
		return
	}
	a := &s.regs[in.dst]
	if is32 {
		low := b.low32().v
		a.v, a.m = a.v&^0xffffffff|low, a.m&^0xffffffff
	} else {
		a.v, a.m = b.v, 0
	}
	a.taint = a.taint && a.m != 0
}

// exit returns from a function.
func (x *explorer) exit(s *state) bool {
	n := len(s.frames) - 1
	if n == 0 {
		return false
	}
	f := s.frames[n]
	s.frames = s.frames[:n]
	for i := range 5 {
		s.regs[1+i] = unknown
	}
	copy(s.regs[6:], f.saved[:])
	s.bury()
	s.at = f.ret
	return true
}

// bury finds what points into a frame that is no more: in r0, and on the
// stacks of the callers. What the callers have saved is older than the frame.
// The next call may take its place, so that a store there still counts.
func (s *state) bury() {
	bury := func(v *value) {
		if v.kind == stackPtr && int(v.base) >= len(s.frames) {
			*v = value{kind: stackAny}
		}
	}
	bury(&s.regs[0])
	for i := range s.frames {
		for k := range s.frames[i].stack {
			bury(&s.frames[i].stack[k].val)
		}
	}
}

// maxFrames is the verifier's limit on nested calls.
const maxFrames = 8

func (x *explorer) call(s *state, in *insn) bool {
	if in.src == pseudoCall && in.ref.kind != refExtern {
		return x.callFunc(s, in.ref.fn)
	}
	x.helperWrites(s, in)
	x.clobberCall(s)
	s.at.insn++
	return true
}

// Helpers that only read what their pointers point to, and those that hand
// one on to a callback.
const (
	fnMapLookup      = 1
	fnMapUpdate      = 2
	fnMapDelete      = 3
	fnTailCall       = 12
	fnForEachMapElem = 164
	fnTimerCallback  = 170
	fnAttachCookie   = 174
	fnFindVMA        = 180
	fnLoop           = 181
	fnRingbufDrain   = 209
)

func hasCallback(helper int32) bool {
	switch helper {
	case fnForEachMapElem, fnTimerCallback, fnFindVMA, fnLoop, fnRingbufDrain:
		return true
	}
	return false
}

// callFunc calls a function of the object.
func (x *explorer) callFunc(s *state, fn int) bool {
	if fn < 0 {
		x.odd = "call of a function that has no symbol"
		return false
	}
	if x.o.funcs[fn].global && x.in.globals {
		if x.in.lazyGlobals && !x.queued[fn] {
			x.queued[fn] = true
			x.enter(fn, s.level)
		}
		for r := 1; r <= 5; r++ {
			if v := s.regs[r]; v.isStack() {
				x.forgetAll(s, v)
			}
		}
		x.clobberCall(s)
		s.at.insn++
		return true
	}
	if len(s.frames) >= maxFrames {
		x.odd = "calls nest too deeply"
		return false
	}
	f := frame{ret: site{s.at.fn, s.at.insn + 1}, fn: fn}
	copy(f.saved[:], s.regs[6:])
	s.frames = append(s.frames, f)
	s.regs[0] = unknown
	for r := 6; r <= 9; r++ {
		s.regs[r] = unknown
	}
	s.at = site{fn, 0}
	return true
}

func (x *explorer) clobberCall(s *state) {
	for r := range 6 {
		s.regs[r] = unknown
	}
}

func (x *explorer) forgetAll(s *state, p value) {
	if p.kind == stackPtr {
		s.frames[p.base].stack = nil
		return
	}
	x.clobber(s, p, 0, 0)
}

// helperWrites forgets what a helper or kfunc may write to the stack: as much
// as the argument after the pointer says, or all.
func (x *explorer) helperWrites(s *state, in *insn) {
	if in.isHelper() && in.imm >= fnMapLookup && in.imm <= fnMapDelete {
		return
	}
	for r := uint8(1); r <= 5; r++ {
		p := s.regs[r]
		switch {
		case !p.isStack():
		case p.kind == stackAny, !in.isHelper(), hasCallback(in.imm):
			x.forgetAll(s, p)
		case r < 5 && s.regs[r+1].isConst():
			// Without a length, none is written that is longer than 16 bytes.
			n := max(16, min(512, s.regs[r+1].v))
			s.frames[p.base].forget(int64(p.v), int64(n))
		default:
			s.frames[p.base].forget(int64(p.v), 512)
		}
	}
}
