package check

import (
	"encoding/binary"
	"slices"
)

// features are the abilities of a kernel's verifier that decide what it can
// reach.
type features struct {
	rodata      bool // frozen maps are constants (5.5)
	partial     bool // spills of less than 8 bytes keep their value (5.16)
	narrow      bool // so do fills of a part of what was spilled (6.9)
	stImm       bool // so do stores of an immediate (6.3)
	globals     bool // global functions are verified on their own (5.6)
	lazyGlobals bool // but only those that are called (6.8)
}

// inputs is all that an exploration depends upon.
type inputs struct {
	features
	relo     func(record int) (v uint64, poisoned, ok bool)
	ksym     func(e *extern) bool       // the kernel has it
	kconfig  func(e *extern) value      // may be tainted
	settable func(variable string) bool // the loader may change it
}

// maxSteps bounds the instructions that one exploration executes, as the
// verifier bounds its own to a million; maxStates the states that are kept
// apart at one instruction before they are merged.
const (
	maxSteps  = 150_000
	maxStates = 64
)

// explorer executes a program abstractly.
type explorer struct {
	o  *Object
	pr *program
	in *inputs

	visits map[site][]visit
	seen   map[site]level     // instructions that were executed
	taken  map[site]*decision // branches that constants decided
	facts  []fact
	work   []*state
	queued map[int]bool // global functions and callbacks
	steps  int
	gaveUp bool
	odd    string // why something could not be followed
}

// visit is a state at the target of a jump, on one stack of calls.
type visit struct {
	s      *state
	calls  uint64 // hash of the calls that lead there
	merged bool
}

// decision is what became of a conditional jump.
type decision struct {
	yes, no bool  // sides that were followed
	src     int32 // 1 + the fact that decided
}

// fact is where a constant comes from.
type fact struct {
	record int    // of the relocation log, -1 for others
	name   string // of a variable
	v      uint64
}

// explore executes a program from its entry. The result says of every
// instruction whether it can be reached.
func explore(o *Object, pr *program, in *inputs) *explorer {
	x := &explorer{
		o: o, pr: pr, in: in, visits: make(map[site][]visit), seen: make(map[site]level),
		taken: make(map[site]*decision), queued: make(map[int]bool),
	}
	x.enter(pr.fn, certain)
	if in.globals && !in.lazyGlobals {
		for _, fn := range pr.funcs[1:] {
			if o.funcs[fn].global {
				x.enter(fn, certain)
			}
		}
	}
	for len(x.work) > 0 {
		s := x.work[len(x.work)-1]
		x.work = x.work[:len(x.work)-1]
		x.path(s)
		if x.steps > maxSteps {
			x.gaveUp = true
			break
		}
	}
	return x
}

// enter starts at a function with unknown arguments.
func (x *explorer) enter(fn int, l level) {
	s := &state{at: site{fn, 0}, level: l, frames: []frame{{fn: fn}}}
	for i := range s.regs {
		s.regs[i] = unknown
	}
	s.regs[1].kind = anyPtr
	if fn != x.pr.fn {
		for i := 1; i <= 5; i++ {
			s.regs[i] = unknown
		}
	}
	x.work = append(x.work, s)
}

// path executes from s until the path ends or an earlier one covers it.
func (x *explorer) path(s *state) {
	for x.steps <= maxSteps {
		f := &x.o.funcs[s.at.fn]
		if s.at.insn < 0 || s.at.insn >= len(f.insns) {
			x.odd = "execution leaves the function " + f.name
			return
		}
		if f.leader[s.at.insn] && !x.arrive(s) {
			return
		}
		x.steps++
		if l, ok := x.seen[s.at]; !ok || s.level < l {
			x.seen[s.at] = s.level
		}
		if !x.step(s, &f.insns[s.at.insn]) {
			return
		}
	}
}

// step executes one instruction, and reports whether the path goes on in s.
func (x *explorer) step(s *state, in *insn) bool {
	switch in.class() {
	case classALU, classALU64:
		x.alu(s, in)
	case classLD:
		return x.load64(s, in)
	case classLDX:
		s.write(in.dst, x.load(s, in))
	case classST, classSTX:
		x.store(s, in)
	default:
		return x.jump(s, in)
	}
	s.at.insn++
	return true
}

func (s *state) write(r uint8, v value) {
	if r < 10 {
		s.regs[r] = v
	}
}

// relocated returns the immediate or offset of an instruction after its
// relocation. Not known are those of a poisoned one.
func (x *explorer) relocated(at site) (v value, is bool) {
	rec, ok := x.o.reloAt[at]
	if !ok {
		return value{}, false
	}
	n, poisoned, ok := x.in.relo(rec)
	if poisoned || !ok {
		return unknown, true
	}
	v = constant(n)
	v.src = x.fact(fact{record: rec, v: n})
	return v, true
}

func (x *explorer) fact(f fact) int32 {
	for i := range x.facts {
		if x.facts[i] == f {
			return int32(i + 1)
		}
	}
	x.facts = append(x.facts, f)
	return int32(len(x.facts))
}

func (x *explorer) alu(s *state, in *insn) {
	is32 := in.class() == classALU
	op := in.op & 0xf0
	var b value
	if in.op&srcReg != 0 {
		b = s.reg(in.src)
	} else if v, ok := x.relocated(s.at); ok {
		if b = v; v.isConst() { // the loader writes 32 bits
			b.v = uint64(int64(int32(v.v)))
		}
	} else {
		b = constant(uint64(int64(in.imm)))
	}
	a := s.reg(in.dst)
	switch {
	case in.isAddrSpaceCast():
		s.write(in.dst, unknown)
	case op == 0xb0:
		s.write(in.dst, mov(in, b, is32))
	case op == 0x80 || op == 0xd0: // negation and byte swaps
		s.write(in.dst, value{m: ^uint64(0), taint: a.taint})
	case a.kind == scalar && b.kind == scalar:
		if in.off != 0 && (op == 0x30 || op == 0x90) {
			b = unknown
		}
		s.write(in.dst, alu(op, a, b, is32))
	default:
		s.write(in.dst, pointer(op, a, b, is32))
	}
}

// mov is a move, with sign extension where off says so.
func mov(in *insn, b value, is32 bool) value {
	if in.op&srcReg != 0 && in.off != 0 {
		if !b.isConst() {
			return value{m: ^uint64(0), taint: b.taint}
		}
		n := 64 - uint(in.off)
		b.v = uint64(int64(b.v<<n) >> n)
	}
	if is32 {
		return b.low32()
	}
	return b
}

// pointer is arithmetic with a pointer.
func pointer(op uint8, a, b value, is32 bool) value {
	if a.kind == scalar && op == 0x00 {
		a, b = b, a
	}
	if is32 || b.kind != scalar || op != 0x00 && op != 0x10 {
		if a.isStack() || b.isStack() {
			return value{kind: stackAny}
		}
		return unknown
	}
	switch {
	case a.kind == stackPtr && !b.isConst(), a.kind == stackAny:
		return value{kind: stackAny}
	case a.kind == dataPtr && !b.isConst(), a.kind == nonNull:
		return value{kind: nonNull}
	case a.kind == anyPtr:
		return a
	case op == 0x10:
		a.v -= b.v
	default:
		a.v += b.v
	}
	return a
}

// load64 is a 64-bit immediate load, or one of the old loads from packets.
func (x *explorer) load64(s *state, in *insn) bool {
	at := s.at
	if in.op != opLdImm64 { // LD_ABS, LD_IND
		for r := range 6 {
			s.regs[r] = unknown
		}
		s.at.insn++
		return true
	}
	s.at.insn += 2
	v := constant(uint64(in.imm64))
	switch in.ref.kind {
	case refNone:
		if r, ok := x.relocated(at); ok {
			v = r
		} else if in.src != 0 {
			v = value{kind: nonNull}
		}
	case refMap:
		v = value{kind: anyPtr}
	case refData:
		v = value{kind: nonNull}
		if i := x.section(in.ref.name); i >= 0 {
			v = value{kind: dataPtr, base: int32(i), v: uint64(in.ref.off)}
		}
	case refFunc:
		v = value{kind: nonNull}
		x.callback(in.ref.fn, s.level)
	case refExtern:
		v = x.externAddress(in.ref.name)
	}
	s.write(in.dst, v)
	return true
}

// section returns the number of what a data pointer points to, or -1.
func (x *explorer) section(name string) int {
	return slices.Index(x.o.pointees, name)
}

func (x *explorer) externAddress(name string) value {
	e, ok := x.o.externs[name]
	switch {
	case !ok:
		return unknown
	case e.kconfig:
		return value{kind: dataPtr, base: int32(x.section(name))}
	case x.in.ksym(&e):
		return value{kind: nonNull}
	}
	v := constant(0)
	v.src = x.fact(fact{record: -1, name: name})
	return v
}

// callback follows a function whose address is taken, with unknown arguments:
// callbacks of timers and loops.
func (x *explorer) callback(fn int, l level) {
	if fn < 0 {
		x.odd = "address of a function that has no symbol"
		return
	}
	if !x.queued[fn] {
		x.queued[fn] = true
		x.enter(fn, l)
	}
}

func (x *explorer) load(s *state, in *insn) value {
	p, off, n := s.reg(in.src), int64(in.off), in.memSize()
	if mode := in.op & 0xe0; mode != modeMem {
		return unknown
	}
	if _, ok := x.o.reloAt[s.at]; ok { // a field of the kernel's
		return unknown.trim(n)
	}
	switch p.kind {
	case stackPtr:
		f := &s.frames[p.base]
		return f.load(int64(p.v)+off, n, x.in.narrow && x.o.order == binary.LittleEndian)
	case dataPtr:
		return x.loadData(p, off, n)
	}
	return unknown.trim(n)
}

// loadData reads what the loader has frozen.
func (x *explorer) loadData(p value, off int64, n int) value {
	name := x.o.pointees[p.base]
	off += int64(p.v)
	if e, ok := x.o.externs[name]; ok {
		v := x.in.kconfig(&e)
		if off != 0 || n > x.o.kconfig[name] {
			v = value{m: ^uint64(0), taint: v.taint}
		}
		v = v.trim(n)
		v.src = x.fact(fact{record: -1, name: name, v: v.v})
		return v
	}
	var variable string
	for _, y := range x.o.vars[name] {
		if off >= y.off && off < y.off+y.size {
			variable = y.name
		}
	}
	v := readBytes(x.o.data[name], off, n, x.o.order == binary.BigEndian)
	switch {
	case x.in.settable(variable):
		v = value{m: ^uint64(0), taint: true}.trim(n)
	case !x.in.rodata:
		return unknown.trim(n)
	}
	if variable != "" {
		v.src = x.fact(fact{record: -1, name: variable, v: v.v})
	}
	return v
}

func (x *explorer) store(s *state, in *insn) {
	p, off, n := s.reg(in.dst), int64(in.off), in.memSize()
	if in.op&0xe0 != modeMem { // atomic
		if plain := *in; in.imm == loadAcquire || in.imm == storeRelease {
			plain.op = in.op&^0xe0 | modeMem
			if in.imm == storeRelease {
				x.store(s, &plain)
				return
			}
			plain.op = plain.op&^7 | classLDX
			s.write(in.dst, x.load(s, &plain))
			return
		}
		x.clobber(s, p, off, int64(n))
		if in.src < 10 {
			s.regs[in.src] = unknown
		}
		s.regs[0] = unknown
		return
	}
	v := constant(uint64(int64(in.imm)))
	zero := v.v == 0 // of the whole register: half of one that is 0 is not seen
	v = v.trim(n)
	if in.class() == classSTX {
		v = s.reg(in.src)
		zero = v.isConst() && v.v == 0
		if n < 8 && v.isStack() {
			v = unknown
		}
		v = v.trim(n)
	} else if !x.in.stImm {
		v, zero = unknown, false
	}
	x.clobber(s, p, off, int64(n))
	if p.kind != stackPtr {
		return
	}
	at := int64(p.v) + off
	keep := at%8 == 0 && (n == 8 || x.in.partial) || zero
	if keep && at >= -512 && at < 0 && !(v.kind == scalar && v.m == ^uint64(0) && !v.taint) {
		s.frames[p.base].set(int16(at), uint8(n), v)
	}
}

// clobber forgets what a store of n bytes through p overwrites.
func (x *explorer) clobber(s *state, p value, off, n int64) {
	switch p.kind {
	case stackPtr:
		s.frames[p.base].forget(int64(p.v)+off, n)
	case stackAny:
		for i := range s.frames {
			s.frames[i].stack = nil
		}
	}
}
