// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/limits"
)

// program is what the explorations of one program's functions share.
type program struct {
	object *bpfobj.Code
	in     *Input

	meter   *limits.Meter
	known   map[Entry]*Summary
	charged map[*Summary]bool
	code    map[int]*code
	frames  int // number of callers of the explored function
	steps   int
	work    int
	gaveUp  bool
}

// code is a function, prepared for explorations.
type code struct {
	*bpfobj.Function
	leaders []bool      // slots where paths can meet
	ends    []bool      // slots from which the function returns without another jump or call
	live    []live      // one per slot; nil if unknown
	taken   uint64      // see taken
	loops   map[int]int // see findLoops
	gaps    gaps        // relevant gaps
}

// explorer executes a function abstractly.
type explorer struct {
	*program

	summary *Summary
	whole   bool // no limit ended the exploration, and no call nests too deeply
	funcs   map[int]*covered
	code    *code    // function of the current instruction
	here    *covered // coverage of that function

	records    map[int32]bool // records whose values matter
	asked      Features       // features that matter
	unfinished []Relevant     // relevant input of called functions
	visits     map[place][]visit
	sources    map[Origin]int32 // value.src of each origin
	work       []*state
	bytes      int // size of the states in visits and work
}

// place is where paths can meet: an instruction, and a hash of the calls that lead there.
type place struct {
	at    bpfobj.Site
	calls uint64
}

// visit is a state that was at a place.
type visit struct {
	state  *state
	merged bool
}

// Explore executes a program of an object from its entry. It gives up when ctx ends.
func Explore(ctx context.Context, o *bpfobj.Code, pr *bpfobj.Program, in *Input) *Result {
	p := &program{
		object: o, in: in, meter: limits.NewMeter(ctx, limits.ExploreWork, "states to compare"),
		known: make(map[Entry]*Summary), charged: make(map[*Summary]bool), code: make(map[int]*code),
	}
	r := &Result{object: o, pr: pr, in: in, at: make(map[*Summary]int), of: make(map[int][]part)}
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
		r.relevant = []Relevant{{Features: Globals | LazyGlobals}}
		if in.Has(Globals) && !in.Has(LazyGlobals) {
			later(entered{fn, Certain})
		}
	}
	for i := 0; i < len(todo) && p.within(); i++ {
		from := main
		if i > 0 {
			from = anyEntry(todo[i].fn)
		}
		sum, whole := p.summarize(from, 0)
		r.relevant = append(r.relevant, sum.relevant)
		if whole || i == 0 || p.within() {
			r.add(sum, todo[i].level, later)
		}
	}
	r.GaveUp, r.Work = !p.within(), p.work
	return r
}

// explore executes a function from its entry.
func (p *program) explore(from Entry) *explorer {
	x := &explorer{
		program: p, whole: true, summary: &Summary{depth: 1}, funcs: make(map[int]*covered),
		records: make(map[int32]bool), visits: make(map[place][]visit), sources: make(map[Origin]int32),
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
	x.summary.relevant = x.depends()
	for _, c := range x.funcs {
		x.summary.funcs = append(x.summary.funcs, c)
	}
	slices.SortFunc(x.summary.funcs, func(a, b *covered) int { return cmp.Compare(a.fn, b.fn) })
	return x
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

// spend counts work also for the summary.
func (x *explorer) spend(n int) bool {
	x.summary.work += n
	x.gaveUp = x.gaveUp || x.bytes > limits.StateBytes
	return x.program.spend(n)
}

// later queues a state.
func (x *explorer) later(s *state) {
	x.bytes += s.size()
	x.work = append(x.work, s)
}

// fork copies a state.
func (x *explorer) fork(s *state) *state {
	c, bytes := s.clone()
	x.bytes += bytes
	return c
}

// path executes from s until the path ends or an earlier one covers it.
func (x *explorer) path(s *state) {
	x.here = nil
	for x.spend(1) {
		if fn := s.at.Fn; x.here == nil || x.here.fn != fn {
			x.code, x.here = x.codeOf(fn), x.funcs[fn]
			if x.here == nil {
				x.here = &covered{fn: fn, levels: make([]Level, len(x.code.Insns))}
				x.funcs[fn] = x.here
			}
		}
		if s.at.Insn < 0 || s.at.Insn >= len(x.here.levels) {
			x.summary.odd = LeavesFunction
			return
		}
		if x.code.leaders[s.at.Insn] && !x.arrive(s) {
			return
		}
		x.steps++
		x.summary.steps++
		x.here.levels[s.at.Insn] = surer(x.here.levels[s.at.Insn], s.level)
		if !x.step(s, &x.code.Insns[s.at.Insn]) {
			return
		}
	}
}

// codeOf returns the code of a function.
func (p *program) codeOf(fn int) *code {
	f := p.code[fn]
	if f == nil {
		f = &code{Function: &p.object.Funcs[fn]}
		f.leaders, f.ends = bpfobj.JumpTargets(f.Insns), findEnds(f.Insns)
		f.live, f.taken = findLive(f.Insns), taken(f.Insns)
		for i := range f.leaders {
			if i == 0 || f.Insns[i-1].Op == bpfobj.OpCall && f.Insns[i-1].Src == asm.PseudoCall {
				f.leaders[i] = true
			}
		}
		f.loops, f.gaps = findLoops(f.Insns, f.leaders), gapsIn(f.Insns)
		p.code[fn] = f
	}
	return f
}

// findEnds marks the instructions after which a function only returns.
func findEnds(code []bpfobj.Insn) []bool {
	ends := make([]bool, len(code)+2)
	for i := len(code) - 1; i >= 0; i-- {
		in := &code[i]
		ends[i] = in.Op == bpfobj.OpExit || !in.Op.Class().IsJump() && ends[i+in.Slots()]
	}
	return ends
}

// step executes one instruction, and reports whether the path continues in s.
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

// relocated returns the immediate of an instruction with a CO-RE relocation.
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

// source returns the src of a value from a variable or an extern.
func (x *explorer) source(name string, v uint64) int32 {
	f := Origin{Record: -1, Name: name, V: v}
	n, ok := x.sources[f]
	if !ok {
		x.summary.origins = append(x.summary.origins, f)
		n = -int32(len(x.summary.origins))
		x.sources[f] = n
	}
	return n
}

// alu executes an arithmetic instruction.
func (x *explorer) alu(s *state, in *bpfobj.Insn) {
	is32, op := in.Op.Class() == asm.ALUClass, in.Op.ALUOp()
	a, b := s.reg(in.Dst), x.operand(s, in)
	switch {
	case in.IsAddrSpaceCast():
		s.write(in.Dst, unknown)
	case op == asm.Mov:
		x.move(s, in, b, is32)
	case op == asm.Neg || op == asm.Swap:
		s.write(in.Dst, value{mask: ^uint64(0), taint: a.taint, lost: a.lost})
	case a.kind == scalar && b.kind == scalar:
		if in.Off != 0 && (op == asm.Div || op == asm.Mod) {
			b = value{mask: ^uint64(0), lost: b.lost}
		}
		s.write(in.Dst, x.compute(op, a, b, is32))
	default:
		x.countALU(op, a, b, is32)
		v := x.pointer(op, a, b, is32)
		if v.lost = a.lost || b.lost; v.lost && v.isStack() {
			s.doubt()
		}
		s.write(in.Dst, v)
	}
}

// operand returns the second operand of an arithmetic instruction.
func (x *explorer) operand(s *state, in *bpfobj.Insn) value {
	if isRegister(in) {
		return s.reg(in.Src)
	}
	v, ok := x.relocated(in)
	switch {
	case !ok:
		return constant(uint64(in.Imm))
	case v.isConst(): // loaders write 32 bits
		v.bits = uint64(int64(int32(v.bits)))
	}
	return v
}

// move writes b, which verifiers without Constants do not know any longer after a move of a half.
func (x *explorer) move(s *state, in *bpfobj.Insn, b value, is32 bool) {
	if is32 || in.Off != 0 {
		x.counts(b)
	}
	v := mov(in, b, is32)
	if is32 && isRegister(in) && b.kind == scalar && !b.isBlank() && !x.knows(Constants) {
		v = value{mask: math.MaxUint32, lost: true, gaps: b.gaps}
	}
	s.write(in.Dst, v)
	if isRegister(in) && b.gaps != 0 {
		s.copied(in)
	}
}

// compute returns what a verifier knows of the result of an operation on two numbers.
func (x *explorer) compute(op asm.ALUOp, a, b value, is32 bool) value {
	x.countALU(op, a, b, is32)
	v := alu(op, a, b, is32)
	if shifts := op == asm.RSh || op == asm.LSh; (op == asm.And || shifts) && b.isConst() && !v.isConst() && !a.lost {
		if op != asm.LSh {
			v.gaps = a.gaps & noLower
		}
		if a.gaps.has(open | unbounded) {
			v.gaps |= open | unbounded
		}
	}
	if op == asm.Xor && !v.isBlank() && !x.knows(Partly) {
		return unknown
	}
	return v
}

// isRegister reports whether the second operand of an operation or a jump is a register.
func isRegister(in *bpfobj.Insn) bool { return in.Op&asm.OpCode(asm.RegSource) != 0 }

// mov is a move, with sign extension if Off is set.
func mov(in *bpfobj.Insn, b value, is32 bool) value {
	if isRegister(in) && in.Off != 0 {
		if !b.isConst() {
			return value{mask: ^uint64(0), taint: b.taint, lost: b.lost}
		}
		n := 64 - uint(in.Off)
		b.bits = uint64(int64(b.bits<<n) >> n)
	}
	if is32 {
		return b.low32()
	}
	return b
}

// pointer computes with a pointer.
func (x *explorer) pointer(op asm.ALUOp, a, b value, is32 bool) value {
	if a.kind == scalar && op == asm.Add {
		a, b = b, a
	}
	if is32 || a.kind == nonZero || b.kind != scalar || op != asm.Add && op != asm.Sub {
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
		a.bits -= b.bits
	default:
		a.bits += b.bits
	}
	return a
}

// load64 executes a 64-bit immediate load, or one of the old loads from packets.
func (x *explorer) load64(s *state, in *bpfobj.Insn) {
	if in.Op != bpfobj.OpLdImm64 { // LD_ABS or LD_IND
		s.clobberCall()
		return
	}
	v := constant(uint64(in.Imm))
	switch in.Ref.Kind() {
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
		if in.Ref.N() >= 0 {
			v = value{kind: dataPtr, base: int32(in.Ref.N()), bits: uint64(in.Imm)}
		}
	case bpfobj.RefFunc:
		v = value{kind: nonNull}
		if _, later := x.code.loops[s.at.Insn]; !later {
			x.callback(s, in.Ref.N())
		}
	case bpfobj.RefExtern:
		v = x.externAddress(in.Ref.N())
	}
	s.write(in.Dst, v)
}

func (x *explorer) externAddress(n int) value {
	e := &x.object.Externs[n]
	switch {
	case e.Kind == bpfobj.ExternUndeclared:
		return unknown
	case e.Kind == bpfobj.ExternKconfig:
		return value{kind: dataPtr, base: int32(len(x.object.Data) + n)}
	}
	v := x.in.Ksym(e).value()
	switch {
	case !v.isConst() || v.bits == 0:
	case e.Type == 0: // loaders write the address
		return value{kind: nonZero}
	default:
		return value{kind: nonNull}
	}
	v.src = x.source(e.Name, v.bits)
	return v
}

// callback enters a function whose address is taken, such as a callback of a timer, with unknown arguments.
func (x *explorer) callback(s *state, fn int) {
	if fn < 0 {
		x.summary.odd = UnnamedAddress
		return
	}
	x.enter(s, fn)
}
