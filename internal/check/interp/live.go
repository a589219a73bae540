// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"math"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// live is what an instruction and those after it may read: registers, and words of the function's own stack.
type live struct {
	regs  bpfobj.Registers
	words uint64 // bit n is the word of eight bytes at offset 8n-512 from the top
}

// words returns the words of the stack in size bytes at off.
func words(off, size int64) (w uint64) {
	for i := (off + 512) >> 3; i <= (off+size-1+512)>>3; i++ {
		if 0 <= i && i < 64 {
			w |= 1 << i
		}
	}
	return w
}

// findLive returns what is live before each instruction of a function, nil if loops nest too deeply. Words that the function
// can reach through other registers than r10 are always live.
func findLive(code []bpfobj.Insn) []live {
	const rounds = 16
	before := make([]live, len(code))
	always := taken(code)
	for range rounds {
		changed := false
		for i := len(code) - 1; i >= 0; i-- {
			in := &code[i]
			l := liveAfter(in, i, before).through(in, always)
			if l != before[i] {
				before[i], changed = l, true
			}
		}
		if !changed {
			return before
		}
	}
	return nil
}

// liveAfter returns what is live before the instructions that can follow instruction i.
func liveAfter(in *bpfobj.Insn, i int, before []live) (l live) {
	if next := i + in.Slots(); in.FallsThrough() && next < len(before) {
		l = before[next]
	}
	if slots, ok := in.Jump(); ok {
		if to := i + 1 + slots; 0 <= to && to < len(before) {
			l.regs |= before[to].regs
			l.words |= before[to].words
		}
	}
	return l
}

// through returns what is live before an instruction after which l is. Words of always stay live.
func (l live) through(in *bpfobj.Insn, always uint64) live {
	reads, writes := in.Touches()
	l.regs = l.regs&^writes | reads
	l.words |= always
	class := in.Op.Class()
	store, load := class == asm.StClass || class == asm.StXClass, class == asm.LdXClass
	if !(store && in.Dst == asm.RFP || load && in.Src == asm.RFP) {
		return l
	}
	if w := words(int64(in.Off), int64(in.Op.Size().Sizeof())); store && in.Op.Mode() == asm.MemMode {
		l.words = l.words&^w | always
	} else {
		l.words |= w
	}
	return l
}

// taken returns the words of the stack that a function can reach through other registers than r10: the lowest address that it
// takes, and everything above.
func taken(code []bpfobj.Insn) uint64 {
	lowest := int64(0)
	for i := range code {
		in := &code[i]
		class := in.Op.Class()
		switch {
		case in.Src != asm.RFP:
		case class == asm.StXClass:
			return math.MaxUint64
		case class.IsALU() && isRegister(in):
			if in.Op.ALUOp() != asm.Mov || i+1 == len(code) {
				return math.MaxUint64
			}
			add := &code[i+1]
			if add.Op != asm.Add.Op(asm.ImmSource) || add.Dst != in.Dst {
				return math.MaxUint64
			}
			lowest = min(lowest, add.Imm)
		}
	}
	return words(lowest, -lowest)
}

// forgetDead forgets registers and words that no instruction reads, so that states are equal if they
// differ only there.
func (x *explorer) forgetDead(s *state) {
	l := x.liveAt(s.at)
	for r := range s.regs {
		if !l.regs.Has(asm.Register(r)) {
			s.regs[r] = unknown
		}
	}
	for i := len(s.frames) - 1; i >= 0; i-- {
		f := &s.frames[i]
		f.delete(func(y slot) bool { return words(int64(y.off), int64(y.size))&l.words == 0 })
		l = live{}
		if i > 0 {
			l = x.liveAt(f.ret)
		}
		for j := range f.saved {
			if !l.regs.Has(asm.R6 + asm.Register(j)) {
				f.saved[j] = unknown
			}
		}
	}
}

func (x *explorer) liveAt(at bpfobj.Site) live {
	if l := x.codeOf(at.Fn).live; at.Insn < len(l) {
		return l[at.Insn]
	}
	return live{math.MaxUint16, math.MaxUint64}
}

// widen forgets constants of the code, so that counting loops end early.
func (s *state) widen() {
	isConstant := func(v value) bool { return v.kind == scalar && !v.isBlank() && v.src == 0 && !v.taint }
	drop := func(v *value) {
		if isConstant(*v) {
			*v = value{mask: math.MaxUint64, lost: true}
		}
	}
	for i := range s.regs {
		drop(&s.regs[i])
	}
	for i := range s.frames {
		f := &s.frames[i]
		for j := range f.saved {
			drop(&f.saved[j])
		}
		for k := range f.stack {
			if isConstant(f.stack[k].val) {
				f.own()
				drop(&f.stack[k].val)
			}
		}
	}
}
