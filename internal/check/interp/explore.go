// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/limits"
)

// program is what the explorations of one program's functions have in common.
type program struct {
	o  *bpfobj.Object
	in *Input

	meter     *limits.Meter
	known     map[Entry]*Unit
	charged   map[*Unit]bool
	functions map[int]*function
	frames    int // of the units that call the one that is explored
	steps     int
	work      int
	gaveUp    bool
}

// explorer executes a function abstractly.
type explorer struct {
	*program

	u         *Unit
	whole     bool // no limit has ended it, and no call nests too deeply
	reached   map[int][]Level
	decidedBy map[bpfobj.Site]int32  // where the constants of a branch come from, as the src of values
	accesses  map[bpfobj.Site]access // those that count

	records    map[int32]bool // whose values count
	asked      Features
	unfinished []Relevant // of what it calls
	visits     map[place][]visit
	sources    map[Fact]int32 // of facts
	work       []*state
	bytes      int // of the states in visits and work
}

// place is where paths can meet: an instruction, and a hash of the calls that
// lead there.
type place struct {
	at    bpfobj.Site
	calls uint64
}

// visit is a state that was at a place.
type visit struct {
	s      *state
	merged bool
}

// Explore executes a program of an object from its entry. It gives up when ctx
// ends.
func Explore(ctx context.Context, o *bpfobj.Object, pr *bpfobj.Program, in *Input) *Result {
	p := &program{
		o: o, in: in, meter: limits.NewMeter(ctx, limits.ExploreWork, "states to compare"),
		known: make(map[Entry]*Unit), charged: make(map[*Unit]bool), functions: make(map[int]*function),
	}
	r := &Result{o: o, pr: pr, in: in, at: make(map[*Unit]int), of: make(map[int][]int)}
	main := anyEntry(pr.Fn)
	main.args[0] = value{kind: ctxPtr}
	todo, queued := []entered{{pr.Fn, Certain}}, map[int]Level{pr.Fn: Certain}
	later := func(e entered) {
		if l, ok := queued[e.fn]; !ok || e.level < l {
			queued[e.fn] = e.level
			todo = append(todo, e)
		}
	}
	for _, fn := range pr.Funcs[1:] {
		if !o.Funcs[fn].Global {
			continue
		}
		r.relevant = []Relevant{{Features: Features{Globals: true, LazyGlobals: true}}}
		if in.Globals && !in.LazyGlobals {
			later(entered{fn, Certain})
		}
	}
	for i := 0; i < len(todo) && p.within(); i++ {
		from := main
		if i > 0 {
			from = anyEntry(todo[i].fn)
		}
		u, whole := p.unit(from, 0)
		r.relevant = append(r.relevant, u.relevant)
		if whole || i == 0 || p.within() {
			r.add(u, todo[i].level, later)
		}
	}
	r.GaveUp, r.Work = !p.within(), p.work
	return r
}

// explore executes a function from its entry.
func (p *program) explore(from Entry) *explorer {
	x := &explorer{
		program: p, whole: true,
		u:       &Unit{id: units.Add(1), depth: 1},
		records: make(map[int32]bool),
		reached: make(map[int][]Level), decidedBy: make(map[bpfobj.Site]int32), accesses: make(map[bpfobj.Site]access),
		visits: make(map[place][]visit), sources: make(map[Fact]int32),
	}
	s := &state{at: bpfobj.Site{Fn: from.Fn}, level: Certain, frames: []frame{{fn: from.Fn}}}
	for i := range s.regs {
		s.regs[i] = unknown
	}
	copy(s.regs[asm.R1:], from.args[:])
	x.later(s)
	for len(x.work) > 0 && x.within() {
		s := x.work[len(x.work)-1]
		x.work = x.work[:len(x.work)-1]
		x.bytes -= s.size()
		x.path(s)
	}
	x.whole = x.whole && x.within()
	x.finish()
	return x
}

// finish makes of what became of the functions a part of the unit.
func (x *explorer) finish() {
	x.u.relevant = x.depends()
	at := make(map[int]int) // by function: its place
	for _, fn := range slices.Sorted(maps.Keys(x.reached)) {
		at[fn] = len(x.u.funcs)
		x.u.funcs = append(x.u.funcs, covered{fn: fn, levels: x.reached[fn]})
	}
	for site, src := range x.decidedBy {
		if c := &x.u.funcs[at[site.Fn]]; src != 0 {
			c.decided = append(c.decided, decision{int32(site.Insn), src})
		}
	}
	for site, a := range x.accesses {
		c := &x.u.funcs[at[site.Fn]]
		c.accesses = append(c.accesses, a)
	}
	for _, c := range x.u.funcs {
		slices.SortFunc(c.decided, func(a, b decision) int { return cmp.Compare(a.insn, b.insn) })
	}
}

// within reports whether all limits are kept.
func (p *program) within() bool {
	return !p.gaveUp && p.steps <= limits.ExploreSteps && p.meter.Err() == nil
}

// spend counts work, and reports whether all limits are kept.
func (p *program) spend(n int) bool {
	p.work += n
	return p.meter.Step(n) && p.within()
}

// spend counts work, and reports whether all limits are kept.
func (x *explorer) spend(n int) bool {
	x.u.work += n
	x.gaveUp = x.gaveUp || x.bytes > limits.StateBytes
	return x.program.spend(n)
}

// later is to go on in s when the paths before are done.
func (x *explorer) later(s *state) {
	x.bytes += s.size()
	x.work = append(x.work, s)
}

// path executes from s until the path ends or an earlier one covers it.
func (x *explorer) path(s *state) {
	var f *bpfobj.Function
	var leaders []bool
	var reached []Level
	for x.spend(1) {
		if g := &x.o.Funcs[s.at.Fn]; g != f {
			f = g
			leaders, reached = x.function(s.at.Fn).leaders, x.levels(s.at.Fn)
		}
		if s.at.Insn < 0 || s.at.Insn >= len(f.Insns) {
			x.u.odd = "execution leaves the function " + f.Name
			return
		}
		if leaders[s.at.Insn] && !x.arrive(s) {
			return
		}
		x.steps++
		x.u.steps++
		reached[s.at.Insn] = surer(reached[s.at.Insn], s.level)
		if !x.step(s, &f.Insns[s.at.Insn]) {
			return
		}
	}
}

// function is what an exploration needs of a function's code.
type function struct {
	leaders []bool // by slot: paths can meet there
	ends    []bool // by slot: the function returns without another jump or call
	live    []live // by slot; nil if that is not known
	taken   uint64 // words of the stack that it can reach through other registers than r10
	loops   loops
}

func (p *program) function(fn int) *function {
	f := p.functions[fn]
	if f == nil {
		code := p.o.Funcs[fn].Insns
		f = &function{leaders: findLeaders(code), ends: findEnds(code), live: findLive(code), taken: taken(code)}
		f.loops = findLoops(code, f.leaders)
		p.functions[fn] = f
	}
	return f
}

// levels returns what is reached of a function, by slot.
func (x *explorer) levels(fn int) []Level {
	if x.reached[fn] == nil {
		x.reached[fn] = make([]Level, len(x.o.Funcs[fn].Insns))
	}
	return x.reached[fn]
}

// findEnds marks the instructions after which a function does nothing but
// return.
func findEnds(code []bpfobj.Insn) []bool {
	ends := make([]bool, len(code)+2)
	for i := len(code) - 1; i >= 0; i-- {
		in := &code[i]
		class := in.Op.Class()
		ends[i] = in.Op == bpfobj.OpExit || !class.IsJump() && ends[i+in.Slots()]
	}
	return ends
}

// findLeaders marks the beginning, the targets of jumps, and where calls
// return to.
func findLeaders(code []bpfobj.Insn) []bool {
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
		if in.Op == bpfobj.OpCall && in.Src == asm.PseudoCall {
			mark(i + 1)
		}
	}
	return leader
}

// step executes one instruction, and reports whether the path goes on in s.
func (x *explorer) step(s *state, in *bpfobj.Insn) bool {
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
func (x *explorer) relocated(in *bpfobj.Insn) (v value, is bool) {
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
		x.u.facts = append(x.u.facts, f)
		n = -int32(len(x.u.facts))
		x.sources[f] = n
	}
	return n
}

func (x *explorer) alu(s *state, in *bpfobj.Insn) {
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
		s.write(in.Dst, value{m: ^uint64(0), taint: a.taint, lost: a.lost})
	case a.kind == scalar && b.kind == scalar:
		if in.Off != 0 && (op == asm.Div || op == asm.Mod) {
			b = value{m: ^uint64(0), lost: b.lost}
		}
		x.countALU(op, a, b)
		v := alu(op, a, b, is32)
		if l := v.loose(); l != v {
			if x.asked.Ranges = true; !x.in.Ranges {
				v = l
			}
		}
		s.write(in.Dst, v)
	default:
		x.countALU(op, a, b)
		v := x.pointer(op, a, b, is32)
		if v.lost = a.lost || b.lost; v.lost && (v.isStack() || v.kind == farPtr) {
			s.doubt()
		}
		s.write(in.Dst, v)
	}
}

// isRegister reports whether the second operand of an operation or a jump is a
// register.
func isRegister(in *bpfobj.Insn) bool { return in.Op&asm.OpCode(asm.RegSource) != 0 }

// mov is a move, with sign extension where Off says so.
func mov(in *bpfobj.Insn, b value, is32 bool) value {
	if isRegister(in) && in.Off != 0 {
		if !b.isConst() {
			return value{m: ^uint64(0), taint: b.taint, lost: b.lost}
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
func (x *explorer) pointer(op asm.ALUOp, a, b value, is32 bool) value {
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
	case a.kind == dataPtr && !b.isConst(), a.kind == nonNull, a.kind == mapValue:
		if b.isFar() {
			if x.asked.Ranges = true; x.in.Ranges {
				return value{kind: farPtr}
			}
		}
		if a.kind == mapValue {
			return a
		}
		return value{kind: nonNull}
	case a.kind == farPtr:
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
func (x *explorer) load64(s *state, in *bpfobj.Insn) {
	if in.Op != bpfobj.OpLdImm64 { // LD_ABS, LD_IND
		s.clobberCall()
		return
	}
	v := constant(uint64(in.Imm))
	switch r := in.Ref; r.Kind {
	case bpfobj.RefNone:
		if w, ok := x.relocated(in); ok {
			v = w
		} else if in.Src != 0 {
			v = value{kind: nonNull}
		}
	case bpfobj.RefMap:
		v = value{kind: anyPtr}
	case bpfobj.RefData:
		v = value{kind: nonNull}
		if r.N >= 0 {
			v = value{kind: dataPtr, base: r.N, v: uint64(r.Off)}
		}
	case bpfobj.RefFunc:
		v = value{kind: nonNull}
		if _, later := x.function(s.at.Fn).loops[s.at.Insn]; !later {
			x.callback(int(r.N), s.level)
		}
	case bpfobj.RefExtern:
		v = x.externAddress(r.N)
	}
	s.write(in.Dst, v)
}

func (x *explorer) externAddress(n int32) value {
	e := &x.o.Externs[n]
	switch {
	case e.Kind == bpfobj.ExternUndeclared:
		return unknown
	case e.Kind == bpfobj.ExternKconfig:
		return value{kind: dataPtr, base: int32(len(x.o.Data)) + n}
	}
	v := x.in.Ksym(e).value()
	if v.isConst() && v.v != 0 {
		return value{kind: nonNull}
	}
	v.src = x.source(e.Name, v.v)
	return v
}

// callback enters a function whose address is taken, such as a callback of a timer, with arguments of which nothing is known.
func (x *explorer) callback(fn int, l Level) {
	if fn < 0 {
		x.u.odd = "address of a function that has no symbol"
		return
	}
	x.enter(fn, l)
}

func (x *explorer) bigEndian() bool { return x.o.Order == binary.BigEndian }
