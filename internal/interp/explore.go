// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"context"
	"encoding/binary"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfprog"
	"github.com/btfgen/btfgen/internal/limits"
)

// explorer executes a program abstractly.
type explorer struct {
	*Result // alone, so that it does not keep the rest

	meter   *limits.Meter
	leaders map[int][]bool // by function, by slot: paths can meet there
	visits  map[place][]visit
	sources map[Fact]int32 // of facts
	work    []*state
	queued  map[int]bool // global functions and callbacks
	steps   int
	bytes   int // of the states in visits and work
}

// place is where paths can meet: an instruction, and a hash of the calls that
// lead there.
type place struct {
	at    bpfprog.Site
	calls uint64
}

// visit is a state that was at a place.
type visit struct {
	s      *state
	merged bool
}

// Explore executes a program of an object from its entry. It gives up when ctx
// ends.
func Explore(ctx context.Context, o *bpfprog.Object, pr *bpfprog.Program, in *Input) *Result {
	x := &explorer{
		meter:   limits.NewMeter(ctx, limits.ExploreWork, "states to compare"),
		Result:  &Result{o: o, pr: pr, in: in, reached: make(map[int][]Level), decidedBy: make(map[bpfprog.Site]int32), relevant: make(map[int]bool), moved: make(map[bpfprog.Site]Level)},
		leaders: make(map[int][]bool), visits: make(map[place][]visit),
		sources: make(map[Fact]int32), queued: make(map[int]bool),
	}
	x.enter(pr.Fn, Certain)
	if in.Globals && !in.LazyGlobals {
		for _, fn := range pr.Funcs[1:] {
			if o.Funcs[fn].Global {
				x.enter(fn, Certain)
			}
		}
	}
	for len(x.work) > 0 && x.within() {
		s := x.work[len(x.work)-1]
		x.work = x.work[:len(x.work)-1]
		x.bytes -= s.size()
		x.path(s)
	}
	x.GaveUp = !x.within()
	return x.Result
}

// within reports whether all limits are kept.
func (x *explorer) within() bool {
	return x.steps <= limits.ExploreSteps && x.bytes <= limits.StateBytes && x.meter.Err() == nil
}

// spend counts work, and reports whether all limits are kept.
func (x *explorer) spend(n int) bool {
	x.Work += n
	return x.meter.Step(n) && x.within()
}

// later is to go on in s when the paths before are done.
func (x *explorer) later(s *state) {
	x.bytes += s.size()
	x.work = append(x.work, s)
}

// enter starts at a function with unknown arguments; the program's own has its
// context.
func (x *explorer) enter(fn int, l Level) {
	s := &state{at: bpfprog.Site{Fn: fn}, level: l, frames: []frame{{fn: fn}}}
	for i := range s.regs {
		s.regs[i] = unknown
	}
	if fn == x.pr.Fn {
		s.regs[asm.R1] = value{kind: ctxPtr}
	}
	x.later(s)
}

// path executes from s until the path ends or an earlier one covers it.
func (x *explorer) path(s *state) {
	var f *bpfprog.Function
	var leaders []bool
	var reached []Level
	for x.spend(1) {
		if g := &x.o.Funcs[s.at.Fn]; g != f {
			f = g
			leaders, reached = x.scratch(s.at.Fn)
		}
		if s.at.Insn < 0 || s.at.Insn >= len(f.Insns) {
			x.Odd = "execution leaves the function " + f.Name
			return
		}
		if leaders[s.at.Insn] && !x.arrive(s) {
			return
		}
		x.steps++
		if l := reached[s.at.Insn]; l == Unreached || s.level < l {
			reached[s.at.Insn] = s.level
		}
		if !x.step(s, &f.Insns[s.at.Insn]) {
			return
		}
	}
}

// scratch returns what is kept for each slot of a function.
func (x *explorer) scratch(fn int) (leaders []bool, reached []Level) {
	if _, ok := x.leaders[fn]; !ok {
		code := x.o.Funcs[fn].Insns
		x.leaders[fn], x.reached[fn] = findLeaders(code), make([]Level, len(code))
	}
	return x.leaders[fn], x.reached[fn]
}

// findLeaders marks the beginning, the targets of jumps, and where calls
// return to.
func findLeaders(code []bpfprog.Insn) []bool {
	leader := make([]bool, len(code))
	mark := func(i int) {
		if i >= 0 && i < len(leader) {
			leader[i] = true
		}
	}
	mark(0)
	for i := range code {
		in := &code[i]
		if slots, ok := in.Jump(); ok {
			mark(i + 1 + slots)
		}
		if in.Op == bpfprog.OpCall && in.Src == asm.PseudoCall {
			mark(i + 1)
		}
	}
	return leader
}

// step executes one instruction, and reports whether the path goes on in s.
func (x *explorer) step(s *state, in *bpfprog.Insn) bool {
	switch in.Op.Class() {
	case asm.ALUClass, asm.ALU64Class:
		x.alu(s, in)
	case asm.LdClass:
		x.load64(s, in)
	case asm.LdXClass:
		s.write(in.Dst, x.load(s, in))
	case asm.StClass, asm.StXClass:
		x.store(s, in)
	default:
		return x.jump(s, in)
	}
	s.at.Insn += in.Slots()
	return true
}

func (s *state) write(r asm.Register, v value) {
	if r < asm.RFP {
		s.regs[r] = v
	}
}

// relocated returns the immediate of an instruction after its CO-RE
// relocation, if it has one.
func (x *explorer) relocated(in *bpfprog.Insn) (v value, is bool) {
	if in.Record == 0 {
		return value{}, false
	}
	n, known := x.in.Record(int(in.Record - 1))
	if !known {
		return unknown, true
	}
	v = constant(n)
	v.src = in.Record
	return v, true
}

// source returns the src of values that are a fact which no record is.
func (x *explorer) source(name string, v uint64) int32 {
	f := Fact{Record: -1, Name: name, V: v}
	n, ok := x.sources[f]
	if !ok {
		x.facts = append(x.facts, f)
		n = -int32(len(x.facts))
		x.sources[f] = n
	}
	return n
}

func (x *explorer) alu(s *state, in *bpfprog.Insn) {
	is32 := in.Op.Class() == asm.ALUClass
	op := in.Op.ALUOp()
	var b value
	if isRegister(in) {
		b = s.reg(in.Src)
	} else if v, ok := x.relocated(in); ok {
		if b = v; v.isConst() { // the loader writes 32 bits
			b.v = uint64(int64(int32(v.v)))
		}
	} else {
		b = constant(uint64(in.Imm))
	}
	a := s.reg(in.Dst)
	switch {
	case in.IsAddrSpaceCast():
		s.write(in.Dst, unknown)
	case op == asm.Mov:
		if is32 || in.Off != 0 {
			x.counts(b)
		}
		s.write(in.Dst, mov(in, b, is32))
	case op == asm.Neg || op == asm.Swap:
		s.write(in.Dst, value{m: ^uint64(0), taint: a.taint})
	case a.kind == scalar && b.kind == scalar:
		if in.Off != 0 && (op == asm.Div || op == asm.Mod) {
			b = unknown
		}
		x.countALU(op, a, b)
		s.write(in.Dst, alu(op, a, b, is32))
	default:
		x.countALU(op, a, b)
		s.write(in.Dst, pointer(op, a, b, is32))
	}
}

// isRegister reports whether the second operand of an operation or a jump is a
// register.
func isRegister(in *bpfprog.Insn) bool { return in.Op&asm.OpCode(asm.RegSource) != 0 }

// mov is a move, with sign extension where Off says so.
func mov(in *bpfprog.Insn, b value, is32 bool) value {
	if isRegister(in) && in.Off != 0 {
		if !b.isConst() {
			return value{m: ^uint64(0), taint: b.taint}
		}
		n := 64 - uint(in.Off)
		b.v = uint64(int64(b.v<<n) >> n)
	}
	if is32 {
		return b.low32()
	}
	return b
}

// pointer is arithmetic with a pointer.
func pointer(op asm.ALUOp, a, b value, is32 bool) value {
	if a.kind == scalar && op == asm.Add {
		a, b = b, a
	}
	if is32 || b.kind != scalar || op != asm.Add && op != asm.Sub {
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
	case a.kind == anyPtr, a.kind == ctxPtr && !b.isConst():
		return value{kind: anyPtr}
	case op == asm.Sub:
		a.v -= b.v
	default:
		a.v += b.v
	}
	return a
}

// load64 is a 64-bit immediate load, or one of the old loads from packets.
func (x *explorer) load64(s *state, in *bpfprog.Insn) {
	if in.Op != bpfprog.OpLdImm64 { // LD_ABS, LD_IND
		s.clobberCall()
		return
	}
	v := constant(uint64(in.Imm))
	switch r := in.Ref; r.Kind {
	case bpfprog.RefNone:
		if w, ok := x.relocated(in); ok {
			v = w
		} else if in.Src != 0 {
			v = value{kind: nonNull}
		}
	case bpfprog.RefMap:
		v = value{kind: anyPtr}
	case bpfprog.RefData:
		v = value{kind: nonNull}
		if r.N >= 0 {
			v = value{kind: dataPtr, base: r.N, v: uint64(r.Off)}
		}
	case bpfprog.RefFunc:
		v = value{kind: nonNull}
		x.callback(int(r.N), s.level)
	case bpfprog.RefExtern:
		v = x.externAddress(r.N)
	}
	s.write(in.Dst, v)
}

func (x *explorer) externAddress(n int32) value {
	e := &x.o.Externs[n]
	switch {
	case e.Kind == bpfprog.ExternUndeclared:
		return unknown
	case e.Kind == bpfprog.ExternKconfig:
		return value{kind: dataPtr, base: int32(len(x.o.Data)) + n}
	case x.in.Ksym(e):
		return value{kind: nonNull}
	}
	v := constant(0)
	v.src = x.source(e.Name, 0)
	return v
}

// callback follows a function whose address is taken, with unknown arguments:
// callbacks of timers and loops.
func (x *explorer) callback(fn int, l Level) {
	if fn < 0 {
		x.Odd = "address of a function that has no symbol"
		return
	}
	if !x.queued[fn] {
		x.queued[fn] = true
		x.enter(fn, l)
	}
}

func (x *explorer) bigEndian() bool { return x.o.Order == binary.BigEndian }
