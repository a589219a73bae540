// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testlimit"
)

// TestConcrete runs random programs with concrete numbers: everything that a run executes must be reached. The
// functions call each other, pass and leave pointers to their stacks, and write through pointers that they find.
func TestConcrete(t *testing.T) {
	const seed = 11
	rnd := rand.New(rand.NewPCG(seed, seed))
	programs := slow.Some(4_000)
	steps, unreached, ends := 0, 0, make(map[string]int)
	for range programs {
		funcs := (&source{Rand: rnd}).funcs()
		r := run(new(bpfobj.Code), funcs...)
		if r.GaveUp || r.Odd != NothingOdd {
			ends["not followed"]++
			continue
		}
		for f := range funcs {
			for i := range funcs[f] {
				if r.Reached(bpfobj.Site{Fn: f, Insn: i}) == Unreached {
					unreached++
				}
			}
		}
		for range 10 {
			m := execute(t, rnd, r, funcs)
			ends[m.end]++
			steps += m.steps
		}
	}
	t.Logf("%d steps, %d instructions that are not reached, ends: %v", steps, unreached, ends)
	if steps < 10*programs || unreached < programs || ends["exit"] < programs {
		t.Error("the programs are too much alike")
	}
}

// FuzzConcrete does the same with programs of the fuzzer: one byte for each of the source's first choices.
func FuzzConcrete(f *testing.F) {
	for i := range 16 {
		b := make([]byte, 60)
		for k := range b {
			b[k] = byte(i*16 + k*(2*i+1))
		}
		f.Add(b, uint64(i))
	}
	f.Fuzz(func(t *testing.T, choices []byte, seed uint64) {
		if len(choices) > 4<<10 {
			return // longer than any program needs
		}
		funcs := (&source{Rand: rand.New(&tape{choices, rand.NewPCG(seed, 1)})}).funcs()
		r := runIn(testlimit.Looks(200), new(bpfobj.Code), funcs...) // the fuzzer takes ten seconds for a deadlock
		if r.GaveUp || r.Odd != NothingOdd {
			return
		}
		rnd := rand.New(rand.NewPCG(seed, 2))
		for range 10 {
			execute(t, rnd, r, funcs)
		}
	})
}

// tape is a source of random numbers that starts with given ones.
type tape struct {
	given []byte
	rest  *rand.PCG
}

func (p *tape) Uint64() uint64 {
	if len(p.given) == 0 {
		return p.rest.Uint64()
	}
	b := uint64(p.given[0])
	p.given = p.given[1:]
	return b * 0x0101_0101_0101_0101 // package rand uses bits of either end
}

// execute runs a program and checks that everything executed is reached.
func execute(t *testing.T, rnd *rand.Rand, r *Result, funcs [][]insn) *machine {
	t.Helper()
	m := &machine{Rand: rnd, funcs: funcs}
	m.call(0, bpfobj.Site{})
	for m.end == "" && m.steps < 1000 {
		if m.at.Insn >= len(funcs[m.at.Fn]) {
			break
		}
		if r.Reached(m.at) == Unreached {
			t.Fatalf("%+v is executed, but counts as unreached\n%s", m.at, dump(funcs))
		}
		m.step(&funcs[m.at.Fn][m.at.Insn])
	}
	return m
}

func dump(funcs [][]insn) string {
	var b strings.Builder
	for f := range funcs {
		for i, in := range funcs[f] {
			fmt.Fprintf(&b, "%d/%d: op %02x dst %d src %d off %d imm %d fn %d\n", f, i, uint8(in.Op), in.Dst, in.Src, in.Off, in.Imm, in.Ref.N())
		}
	}
	return b.String()
}

// source makes random programs. They mostly keep pointers in r1, r6 and r7.
type source struct {
	*rand.Rand
	code []insn
}

func pick[T any](s *source, of ...T) T { return of[s.IntN(len(of))] }

func (s *source) add(in ...insn) { s.code = append(s.code, in...) }

func (s *source) imm() int64        { return pick[int64](s, 0, 1, 2, 3, 8, -1, 255, 1<<16) }
func (s *source) small() int64      { return int64(s.IntN(3)) }
func (s *source) reg() asm.Register { return pick[asm.Register](s, 0, 0, 2, 2, 3, 3, 8, 8, 9, 6) }
func (s *source) ptr() asm.Register { return pick[asm.Register](s, 10, 10, 10, 10, 6, 6, 7, 1) }
func (s *source) slot() int16       { return int16(-8 * (1 + s.IntN(3))) }
func (s *source) size() asm.Size    { return pick(s, asm.DWord, asm.DWord, asm.DWord, asm.Word, asm.Byte) }

// point makes r a pointer into the stack.
func (s *source) point(r, to asm.Register) {
	s.add(insn{Op: asm.Mov.Op(asm.RegSource), Dst: r, Src: to}, insn{Op: asm.Add.Op(asm.ImmSource), Dst: r, Imm: int64(s.slot())})
}

// look branches on a value on the stack.
func (s *source) look() {
	s.add(insn{Op: asm.LoadMemOp(s.size()), Dst: 9, Src: s.ptr(), Off: s.slot()})
	s.test(9)
}

func (s *source) test(r asm.Register) {
	s.add(insn{Op: pick(s, asm.JEq, asm.JNE).Op(asm.ImmSource), Dst: r, Imm: s.small(), Off: int16(1 + s.IntN(2))})
}

// funcs makes one to four functions. Each one may call later ones.
func (s *source) funcs() [][]insn {
	funcs := make([][]insn, 1+s.IntN(4))
	for f := range funcs {
		s.code = nil
		if f == 0 {
			s.point(1, asm.RFP)
		}
		s.point(6, asm.RFP)
		s.point(7, asm.RFP)
		for n := 8 + s.IntN(24); len(s.code) < n; {
			s.some(f, len(funcs))
		}
		for range 6 { // instructions for jumps beyond the end
			s.add(insn{Op: bpfobj.OpExit})
		}
		funcs[f] = s.code
	}
	return funcs
}

// some adds a few instructions to function f of n.
func (s *source) some(f, n int) {
	switch s.IntN(18) {
	case 14: // a loop
		start := len(s.code)
		s.add(insn{Op: asm.Mov.Op(asm.ImmSource), Dst: 8, Imm: int64(1 + s.IntN(3))})
		for range 1 + s.IntN(2) {
			s.some(f, n)
		}
		s.add(insn{Op: asm.Sub.Op(asm.ImmSource), Dst: 8, Imm: 1})
		s.add(insn{Op: pick(s, asm.JNE, asm.JSGT).Op(asm.ImmSource), Dst: 8, Off: int16(start - len(s.code))})
	case 15: // a callback, which gets a pointer to the stack
		if f+1 < n {
			s.add(insn{Op: bpfobj.OpLdImm64, Dst: 2, Ref: bpfobj.RefTo(bpfobj.RefFunc, f+1+s.IntN(n-f-1))}, insn{},
				insn{Op: asm.Mov.Op(asm.RegSource), Dst: 3, Src: pick[asm.Register](s, 6, 7, 10)},
				insn{Op: bpfobj.OpCall, Imm: int64(asm.FnLoop)})
			s.look()
		}
	case 16, 17: // bounds, and computations with them
		r := pick[asm.Register](s, 0, 2, 3, 8, 9)
		s.add(insn{Op: bpfobj.OpCall, Imm: int64(asm.FnGetPrandomU32)}, insn{Op: asm.Mov.Op(asm.RegSource), Dst: r, Src: 0})
		for range 2 + s.IntN(3) {
			s.add(s.bound(r))
			if s.IntN(2) == 0 {
				in := s.alu()
				in.Dst = r
				s.add(in)
			}
			if s.IntN(8) == 0 {
				s.add(insn{Op: asm.StoreMemOp(asm.DWord), Dst: asm.RFP, Src: r, Off: -32}, insn{Op: asm.LoadMemOp(s.size()), Dst: r, Src: asm.RFP, Off: -32})
			}
		}
	case 0:
		s.point(pick[asm.Register](s, 1, 1, 1, 6, 7), s.ptr())
	case 1: // an address in a frame
		s.add(insn{Op: asm.And.Op(asm.ImmSource), Dst: 2, Imm: 8},
			insn{Op: asm.Mov.Op(asm.RegSource), Dst: 7, Src: 6}, insn{Op: asm.Add.Op(asm.RegSource), Dst: 7, Src: 2},
			insn{Op: asm.StoreImmOp(asm.DWord), Dst: 7, Off: s.slot(), Imm: s.small()})
		s.look()
	case 2:
		s.add(insn{Op: asm.StoreMemOp(s.size()), Dst: s.ptr(), Src: pick(s, s.reg(), asm.RFP), Off: s.slot()})
	case 3:
		s.add(insn{Op: asm.StoreImmOp(s.size()), Dst: s.ptr(), Off: s.slot(), Imm: pick(s, s.imm(), s.small(), s.small())})
	case 4:
		s.add(insn{Op: asm.LoadMemOp(s.size()), Dst: s.reg(), Src: s.ptr(), Off: s.slot()})
	case 5, 6:
		if f+1 < n {
			s.add(insn{Op: asm.Mov.Op(asm.RegSource), Dst: 1, Src: pick[asm.Register](s, 6, 7, 10)}, call(f+1+s.IntN(n-f-1)))
		}
	case 7, 12:
		s.add(insn{Op: asm.Mov.Op(asm.RegSource), Dst: 1, Src: 6}, insn{Op: asm.Mov.Op(asm.ImmSource), Dst: 2, Imm: int64(s.IntN(24))})
		s.add(pick(s,
			insn{Op: bpfobj.OpCall, Imm: int64(asm.FnGetPrandomU32)},
			insn{Op: bpfobj.OpCall, Imm: int64(asm.FnProbeRead)},
			insn{Op: bpfobj.OpCall, Src: asm.PseudoKfuncCall},
		))
		s.look()
	case 11:
		r := pick[asm.Register](s, 8, 9)
		s.add(insn{Op: asm.Mov.Op(asm.ImmSource), Dst: r, Imm: s.small()},
			insn{Op: asm.OpCode(asm.StXClass) | asm.OpCode(asm.AtomicMode) | asm.OpCode(asm.DWord), Dst: s.ptr(), Src: r, Off: s.slot(),
				Imm: pick[int64](s, 0, 1, bpfobj.LoadAcquire, bpfobj.StoreRelease)})
		s.test(r)
	case 8, 9:
		s.look()
	case 10:
		s.add(insn{Op: asm.Mov.Op(asm.ImmSource), Dst: 8, Imm: s.small()}, s.jump())
		s.test(8)
	default:
		s.add(s.alu())
		s.test(s.reg())
	}
}

func (s *source) jump() insn {
	op := pick(s, asm.JEq, asm.JNE, asm.JGT, asm.JGE, asm.JLT, asm.JLE, asm.JSGT, asm.JSGE, asm.JSLT, asm.JSLE, asm.JSet, asm.JCOND)
	in := insn{Op: op.Op(asm.ImmSource), Dst: s.reg(), Imm: s.imm(), Off: int16(s.IntN(6))}
	if s.IntN(40) == 0 {
		in.Off = int16(-s.IntN(len(s.code)))
	}
	if s.IntN(4) == 0 {
		in.Op = in.Op&^7 | asm.OpCode(asm.Jump32Class)
	}
	return s.operand(in)
}

// bound compares a register by size.
func (s *source) bound(r asm.Register) insn {
	op := pick(s, asm.JGT, asm.JGE, asm.JLT, asm.JLE, asm.JSGT, asm.JSGE, asm.JSLT, asm.JSLE)
	in := insn{Op: op.Op(asm.ImmSource), Dst: r, Imm: pick[int64](s, 0, 1, 2, 3, 4, 7, 8, 255, -1), Off: int16(1 + s.IntN(3))}
	if s.IntN(3) == 0 {
		in.Op = in.Op&^7 | asm.OpCode(asm.Jump32Class)
	}
	return in
}

func (s *source) alu() insn {
	op := pick(s, asm.Add, asm.Sub, asm.Mul, asm.Or, asm.And, asm.Xor, asm.Mov, asm.Mov, asm.LSh, asm.RSh, asm.ArSh)
	in := insn{Op: op.Op(asm.ImmSource), Dst: s.reg(), Imm: s.imm()}
	if s.IntN(4) == 0 {
		in.Op = in.Op&^7 | asm.OpCode(asm.ALUClass)
	}
	if op == asm.LSh || op == asm.RSh || op == asm.ArSh {
		in.Imm = int64(s.IntN(32))
		return in
	}
	return s.operand(in)
}

// operand makes the second operand a register now and then.
func (s *source) operand(in insn) insn {
	if s.IntN(3) == 0 {
		in.Op |= asm.OpCode(asm.RegSource)
		in.Src, in.Imm = s.reg(), 0
	}
	return in
}

// machine executes with concrete numbers and pointers into the stack. It stops at an instruction that a verifier would
// refuse.
type machine struct {
	*rand.Rand
	funcs  [][]insn
	at     bpfobj.Site
	regs   [11]word
	frames []activation
	mem    [maxFrames][64]word // words of eight bytes, per frame
	steps  int
	end    string
}

// activation is the caller that a function returns to.
type activation struct {
	ret      bpfobj.Site
	saved    [11]word
	callback bool // the function is a callback, and returns to a helper
	fn       int  // function that the helper calls
	turns    int  // remaining calls of the callback
	context  word // argument of the callback
}

// word is a number, or an offset from the top of a frame.
type word struct {
	v     uint64
	frame int // 1 + the depth; 0 for numbers
}

// number is the number that an instruction sees in a word.
func (w word) number() uint64 {
	if w.frame == 0 {
		return w.v
	}
	return 0xffff_c900_0000_0000 + uint64(w.frame)<<10 + w.v
}

func (m *machine) stop(why string) { m.end = why }

// random is a number, often a small one.
func (m *machine) random() word {
	if m.IntN(2) == 0 {
		return word{v: uint64(m.IntN(10))}
	}
	return word{v: m.Uint64()}
}

func (m *machine) call(fn int, ret bpfobj.Site) {
	if len(m.frames) == maxFrames {
		m.stop("too deep")
		return
	}
	m.frames = append(m.frames, activation{ret: ret, saved: m.regs})
	for r := range m.regs {
		if r == 0 || r > 5 || len(m.frames) == 1 {
			m.regs[r] = m.random()
		}
	}
	m.regs[asm.RFP] = word{frame: len(m.frames)}
	m.at = bpfobj.Site{Fn: fn}
}

// cell returns the eight bytes that contain an access of n bytes at p+off, and its offset in them.
func (m *machine) cell(p word, off int64, n int) (c *word, shift uint) {
	at := int64(p.v) + off + 512
	if p.frame == 0 || at < 0 || at+int64(n) > 512 || at/8 != (at+int64(n)-1)/8 {
		m.stop("bad access")
		return new(word), 0
	}
	return &m.mem[p.frame-1][at/8], uint(at % 8 * 8)
}

func (m *machine) load(p word, off int64, n int) word {
	c, shift := m.cell(p, off, n)
	if n == 8 {
		return *c
	}
	return word{v: c.number() >> shift & (1<<(8*n) - 1)}
}

func (m *machine) store(p word, off int64, n int, w word) {
	c, shift := m.cell(p, off, n)
	if n == 8 {
		*c = w
		return
	}
	mask := uint64(1<<(8*n)-1) << shift
	*c = word{v: c.number()&^mask | w.number()<<shift&mask}
}

// fill writes n random bytes.
func (m *machine) fill(p word, n int) {
	for i := range n {
		if m.end == "" {
			m.store(p, int64(i), 1, m.random())
		}
	}
}

func (m *machine) step(in *insn) {
	m.steps++
	next := bpfobj.Site{Fn: m.at.Fn, Insn: m.at.Insn + 1}
	c, src, dst, n := in.Op.Class(), word{v: uint64(in.Imm)}, &m.regs[in.Dst], in.Op.Size().Sizeof()
	if c == asm.StXClass || (c.IsALU() || c.IsJump()) && isRegister(in) {
		src = m.regs[in.Src]
	}
	switch {
	case in.IsFuncCall():
		m.call(in.Ref.N(), next)
		return
	case in.Op == bpfobj.OpCall && in.Imm == int64(asm.FnLoop) && in.Src == 0:
		m.loop(next)
		return
	case in.Op == bpfobj.OpLdImm64:
		*dst = word{v: address + uint64(in.Ref.N())}
		next.Insn++
	case c == asm.LdClass:
		m.stop("bad jump")
	case in.Op == bpfobj.OpCall:
		m.helper(in)
	case in.Op == bpfobj.OpExit:
		m.exit()
		return
	case c.IsJump():
		if m.holds(in, *dst, src) {
			next.Insn += int(in.Off)
		}
	case c.IsALU():
		m.alu(in, dst, src)
	case c == asm.LdXClass:
		*dst = m.load(m.regs[in.Src], int64(in.Off), n)
	case in.Op.Mode() == asm.AtomicMode && in.Imm == bpfobj.LoadAcquire:
		*dst = m.load(m.regs[in.Src], int64(in.Off), n)
	case in.Op.Mode() == asm.AtomicMode && in.Imm != bpfobj.StoreRelease:
		old := m.load(*dst, int64(in.Off), n)
		m.store(*dst, int64(in.Off), n, word{v: old.number() + src.number()})
		if in.Imm == 1 {
			m.regs[in.Src] = word{v: old.number()}
		}
	default:
		m.store(*dst, int64(in.Off), n, src)
	}
	m.at = next
}

func (m *machine) exit() {
	n := len(m.frames) - 1
	if n == 0 {
		m.stop("exit")
		return
	}
	f := m.frames[n]
	m.frames = m.frames[:n]
	for i := range m.mem[n] { // a stack is unknown until it is written
		m.mem[n][i].frame = 0
	}
	copy(m.regs[asm.R6:], f.saved[asm.R6:])
	for r := asm.R1; r <= asm.R5; r++ {
		m.regs[r] = m.random()
	}
	if f.callback {
		m.regs[asm.R0] = m.random()
	}
	if m.at = f.ret; f.turns > 0 {
		m.callBack(f.fn, f.context, f.turns-1, f.ret)
	}
}

// address is that of function 0. The others follow.
const address = 0xffff_ffff_a000_0000

// loop calls a function as bpf_loop does, up to three times.
func (m *machine) loop(next bpfobj.Site) {
	fn, arg := m.regs[asm.R2], m.regs[asm.R3]
	if fn.frame > 0 || fn.v-address >= uint64(len(m.funcs)) {
		m.stop("bad callback")
		return
	}
	if turns := m.IntN(4); turns > 0 {
		m.callBack(int(fn.v-address), arg, turns-1, next)
		return
	}
	for r := asm.R0; r <= asm.R5; r++ {
		m.regs[r] = m.random()
	}
	m.at = next
}

// callBack calls a callback that a number of turns follow.
func (m *machine) callBack(fn int, context word, turns int, next bpfobj.Site) {
	m.call(fn, next)
	if m.end == "" {
		for r := asm.R0; r <= asm.R5; r++ {
			m.regs[r] = m.random()
		}
		m.regs[asm.R2] = context
		f := &m.frames[len(m.frames)-1]
		f.callback, f.fn, f.turns, f.context = true, fn, turns, context
	}
}

func (m *machine) helper(in *insn) {
	switch {
	case in.Src == asm.PseudoKfuncCall:
		for r := asm.R1; r <= asm.R5; r++ {
			if p := m.regs[r]; p.frame > 0 {
				m.fill(word{v: p.v&^7 + 8*uint64(m.IntN(3)), frame: p.frame}, 8) // the pointer's memory begins there
			}
		}
	case in.Imm == int64(asm.FnProbeRead):
		if size := m.regs[asm.R2]; size.frame > 0 || size.v > 512 {
			m.stop("bad size")
		} else {
			m.fill(m.regs[asm.R1], int(size.v))
		}
	}
	for r := asm.R0; r <= asm.R5; r++ {
		m.regs[r] = m.random()
	}
}

func (m *machine) alu(in *insn, dst *word, src word) {
	op, is32 := in.Op.ALUOp(), in.Op.Class() == asm.ALUClass
	switch {
	case op == asm.Mov && !is32:
		*dst = src
	case op == asm.Mov:
		*dst = word{v: uint64(uint32(src.number()))}
	case dst.frame == 0 && src.frame == 0:
		bits := uint64(64)
		if is32 {
			bits = 32
		}
		if shift := op == asm.LSh || op == asm.RSh || op == asm.ArSh; shift && src.v >= bits {
			m.stop("bad shift")
			return
		}
		*dst = word{v: concrete(op, dst.v, src.v, is32)}
	case is32, op != asm.Add && op != asm.Sub, src.frame > 0 && (dst.frame > 0 || op == asm.Sub):
		m.stop("bad arithmetic")
	case op == asm.Sub:
		dst.v -= src.v
	default:
		*dst = word{v: dst.v + src.v, frame: dst.frame + src.frame}
	}
}

func (m *machine) holds(in *insn, dst, src word) bool {
	if op := in.Op.JumpOp(); op != asm.JCOND {
		return holds(op, dst.number(), src.number(), in.Op.Class() == asm.Jump32Class)
	}
	return m.IntN(2) == 0
}
