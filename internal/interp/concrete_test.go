package interp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfprog"
)

// TestConcrete runs random programs with numbers: what a run executes must
// count as reached. The programs call each other, hand pointers to their stacks
// around, leave them behind, and write through what they find.
func TestConcrete(t *testing.T) {
	const seed = 11
	rnd := rand.New(rand.NewPCG(seed, seed))
	const programs = 8_000
	steps, unreached, ends := 0, 0, make(map[string]int)
	for n := range programs {
		funcs := randomFuncs(rnd)
		o := new(bpfprog.Object)
		r := run(o, funcs...)
		if r.GaveUp || r.Odd != "" {
			ends["not followed"]++
			continue
		}
		for f := range funcs {
			for i := range funcs[f] {
				if r.Reached(bpfprog.Site{Fn: f, Insn: i}) == Unreached {
					unreached++
				}
			}
		}
		for range 10 {
			m := &machine{Rand: rnd, funcs: funcs}
			m.call(0, bpfprog.Site{})
			for m.end == "" && m.steps < 1000 {
				if m.at.Insn >= len(funcs[m.at.Fn]) {
					break
				}
				if r.Reached(m.at) == Unreached {
					t.Fatalf("program %d of seed %d: %+v is executed, but counts as unreached\n%s", n, seed, m.at, dump(funcs))
				}
				m.step(&funcs[m.at.Fn][m.at.Insn])
			}
			ends[m.end]++
			steps += m.steps
		}
	}
	t.Logf("%d steps, %d instructions that are not reached, ends: %v", steps, unreached, ends)
	if steps < 10*programs || unreached < programs || ends["exit"] < programs {
		t.Error("the programs are too much alike")
	}
}

func dump(funcs [][]insn) string {
	var b strings.Builder
	for f := range funcs {
		for i, in := range funcs[f] {
			fmt.Fprintf(&b, "%d/%d: op %02x dst %d src %d off %d imm %d fn %d\n", f, i, uint8(in.Op), in.Dst, in.Src, in.Off, in.Imm, in.Ref.N)
		}
	}
	return b.String()
}

// randomFuncs makes one to four functions. What they have in r1 and r6 is
// often a pointer.
func randomFuncs(rnd *rand.Rand) [][]insn {
	funcs := make([][]insn, 1+rnd.IntN(4))
	imms := []int64{0, 1, 2, 3, 8, -1, 255, 1 << 16}
	imm := func() int64 { return imms[rnd.IntN(len(imms))] }
	reg := func() asm.Register { return []asm.Register{0, 0, 2, 2, 3, 3, 8, 8, 9, 6}[rnd.IntN(10)] }
	ptr := func() asm.Register { return []asm.Register{10, 10, 10, 10, 6, 6, 7, 1}[rnd.IntN(8)] }
	slot := func() int16 { return int16(-8 * (1 + rnd.IntN(3))) }
	size := func() asm.Size { return []asm.Size{asm.DWord, asm.DWord, asm.DWord, asm.Word, asm.Byte}[rnd.IntN(5)] }
	alu := []asm.ALUOp{asm.Add, asm.Sub, asm.Mul, asm.Or, asm.And, asm.LSh, asm.RSh, asm.Xor, asm.ArSh, asm.Mov, asm.Mov, asm.Mov}
	jumps := []asm.JumpOp{asm.JEq, asm.JNE, asm.JEq, asm.JNE, asm.JGT, asm.JGE, asm.JLT, asm.JLE, asm.JSGT, asm.JSGE, asm.JSLT, asm.JSLE, asm.JSet, asm.JCOND}
	for f := range funcs {
		n := 8 + rnd.IntN(24)
		add := func(in ...insn) { funcs[f] = append(funcs[f], in...) }
		for r := range asm.R8 {
			if r >= asm.R6 || r == asm.R1 && f == 0 {
				add(insn{Op: asm.Mov.Op(asm.RegSource), Dst: r, Src: asm.RFP}, insn{Op: asm.Add.Op(asm.ImmSource), Dst: r, Imm: int64(slot())})
			}
		}
		for len(funcs[f]) < n {
			switch rnd.IntN(24) {
			case 0, 1, 12: // a pointer
				r := []asm.Register{1, 1, 1, 6, 7}[rnd.IntN(5)]
				add(insn{Op: asm.Mov.Op(asm.RegSource), Dst: r, Src: ptr()}, insn{Op: asm.Add.Op(asm.ImmSource), Dst: r, Imm: int64(slot())})
			case 15: // somewhere in a frame
				add(insn{Op: asm.And.Op(asm.ImmSource), Dst: 2, Imm: 8},
					insn{Op: asm.Mov.Op(asm.RegSource), Dst: 7, Src: 6}, insn{Op: asm.Add.Op(asm.RegSource), Dst: 7, Src: 2},
					insn{Op: asm.StoreImmOp(asm.DWord), Dst: 7, Off: slot(), Imm: int64(rnd.IntN(3))},
					insn{Op: asm.LoadMemOp(asm.DWord), Dst: 9, Src: 10, Off: slot()}, insn{Op: asm.JNE.Op(asm.ImmSource), Dst: 9, Off: 1, Imm: int64(rnd.IntN(3))})
			case 2, 3:
				add(insn{Op: asm.StoreMemOp(size()), Dst: ptr(), Src: []asm.Register{reg(), 10}[rnd.IntN(2)], Off: slot()})
			case 4:
				add(insn{Op: asm.StoreImmOp(size()), Dst: ptr(), Off: slot(), Imm: imm()})
			case 5, 6:
				add(insn{Op: asm.LoadMemOp(size()), Dst: reg(), Src: ptr(), Off: slot()})
			case 7, 13, 14: // a call
				if f+1 < len(funcs) {
					add(insn{Op: asm.Mov.Op(asm.RegSource), Dst: 1, Src: []asm.Register{6, 7, 10}[rnd.IntN(3)]})
					add(call(int32(f + 1 + rnd.IntN(len(funcs)-f-1))))
				}
			case 8:
				add(insn{Op: asm.Mov.Op(asm.RegSource), Dst: 1, Src: 6}, insn{Op: asm.Mov.Op(asm.ImmSource), Dst: 2, Imm: int64(rnd.IntN(24))})
				add([]insn{
					{Op: bpfprog.OpCall, Imm: int64(asm.FnGetPrandomU32)},
					{Op: bpfprog.OpCall, Imm: int64(asm.FnProbeRead)},
					{Op: bpfprog.OpCall, Src: asm.PseudoKfuncCall},
					{Op: asm.OpCode(asm.StXClass) | asm.OpCode(asm.AtomicMode) | asm.OpCode(asm.DWord), Dst: ptr(), Src: reg(), Off: slot(), Imm: []int64{0, 1, bpfprog.LoadAcquire, bpfprog.StoreRelease}[rnd.IntN(4)]},
				}[rnd.IntN(4)])
			case 16, 17, 18, 19, 20: // what is in a register, or on the stack?
				r := []asm.Register{0, 6, 8, 9}[rnd.IntN(4)]
				if rnd.IntN(4) > 0 {
					add(insn{Op: asm.LoadMemOp(size()), Dst: r, Src: ptr(), Off: slot()})
				}
				add(insn{Op: []asm.JumpOp{asm.JEq, asm.JNE}[rnd.IntN(2)].Op(asm.ImmSource), Dst: r, Imm: int64(rnd.IntN(3)), Off: int16(1 + rnd.IntN(2))})
			case 21, 22, 23:
				add([]insn{
					{Op: asm.Mov.Op(asm.ImmSource), Dst: 8, Imm: int64(rnd.IntN(3))},
					{Op: asm.StoreImmOp(size()), Dst: ptr(), Off: slot(), Imm: int64(rnd.IntN(3))},
					{Op: asm.StoreMemOp(asm.DWord), Dst: ptr(), Src: 8, Off: slot()},
				}[rnd.IntN(3)])
			case 9, 10:
				in := insn{Op: jumps[rnd.IntN(len(jumps))].Op(asm.ImmSource), Dst: reg(), Imm: imm(), Off: int16(rnd.IntN(6))}
				if rnd.IntN(3) == 0 {
					in.Op |= asm.OpCode(asm.RegSource)
					in.Src = reg()
				}
				if rnd.IntN(4) == 0 {
					in.Op = in.Op&^7 | asm.OpCode(asm.Jump32Class)
				}
				if rnd.IntN(40) == 0 {
					in.Off = int16(-rnd.IntN(len(funcs[f]) + 1))
				}
				add(in)
			default:
				in := insn{Op: alu[rnd.IntN(len(alu))].Op(asm.ImmSource), Dst: reg(), Imm: imm()}
				if op := in.Op.ALUOp(); op == asm.LSh || op == asm.RSh || op == asm.ArSh {
					in.Imm = int64(rnd.IntN(32))
				} else if rnd.IntN(2) == 0 {
					in.Op |= asm.OpCode(asm.RegSource)
					in.Src = reg()
				}
				if rnd.IntN(4) == 0 {
					in.Op = in.Op&^7 | asm.OpCode(asm.ALUClass)
				}
				add(in)
			}
		}
		for range 6 { // where jumps to behind the end go
			add(insn{Op: bpfprog.OpExit})
		}
	}
	return funcs
}

// machine executes with numbers and pointers into the stack. It ends where a
// verifier would refuse the program.
type machine struct {
	*rand.Rand
	funcs  [][]insn
	at     bpfprog.Site
	regs   [11]word
	frames []activation
	mem    [maxFrames][64]word // of each frame, eights of bytes
	steps  int
	end    string
}

// activation is what a function returns to.
type activation struct {
	ret   bpfprog.Site
	saved [11]word
}

// word is a number, or an offset from the top of a frame.
type word struct {
	v     uint64
	frame int // 1 + the depth; 0 for numbers
}

// number is what a word looks like to instructions that take numbers.
func (w word) number() uint64 {
	if w.frame == 0 {
		return w.v
	}
	return 0xffff_c900_0000_0000 + uint64(w.frame)<<10 + w.v
}

func (m *machine) stop(why string) { m.end = why }

// random is a number that is often a small one.
func (m *machine) random() word {
	if m.IntN(2) == 0 {
		return word{v: uint64(m.IntN(4))}
	}
	return word{v: m.Uint64()}
}

func (m *machine) call(fn int, ret bpfprog.Site) {
	if len(m.frames) == maxFrames {
		m.stop("too deep")
		return
	}
	m.frames = append(m.frames, activation{ret, m.regs})
	for r := range m.regs {
		if r == 0 || r > 5 || len(m.frames) == 1 {
			m.regs[r] = m.random()
		}
	}
	m.regs[asm.RFP] = word{frame: len(m.frames)}
	m.at = bpfprog.Site{Fn: fn}
}

// cell returns the eight bytes that an access of n bytes at p+off is in, and
// where it begins in there.
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

// fill writes n bytes of anything.
func (m *machine) fill(p word, n int) {
	for i := range n {
		if m.end == "" {
			m.store(p, int64(i), 1, m.random())
		}
	}
}

func (m *machine) step(in *insn) {
	m.steps++
	next := bpfprog.Site{Fn: m.at.Fn, Insn: m.at.Insn + 1}
	c, src, dst, n := in.Op.Class(), word{v: uint64(in.Imm)}, &m.regs[in.Dst], in.Op.Size().Sizeof()
	if c == asm.StXClass || (c.IsALU() || c.IsJump()) && isRegister(in) {
		src = m.regs[in.Src]
	}
	switch {
	case in.IsFuncCall():
		m.call(int(in.Ref.N), next)
		return
	case in.Op == bpfprog.OpCall:
		m.helper(in)
	case in.Op == bpfprog.OpExit:
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
	case in.Op.Mode() == asm.AtomicMode && in.Imm == bpfprog.LoadAcquire:
		*dst = m.load(m.regs[in.Src], int64(in.Off), n)
	case in.Op.Mode() == asm.AtomicMode && in.Imm != bpfprog.StoreRelease:
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
	for i := range m.mem[n] { // nothing is known of a stack that was not written
		m.mem[n][i].frame = 0
	}
	copy(m.regs[asm.R6:], f.saved[asm.R6:])
	for r := asm.R1; r <= asm.R5; r++ {
		m.regs[r] = m.random()
	}
	m.at = f.ret
}

func (m *machine) helper(in *insn) {
	switch {
	case in.Src == asm.PseudoKfuncCall:
		for r := asm.R1; r <= asm.R5; r++ {
			if p := m.regs[r]; p.frame > 0 {
				m.fill(word{v: -uint64(8 * (1 + m.IntN(4))), frame: p.frame}, 8)
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
