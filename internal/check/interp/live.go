// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"math"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// live is what an instruction and those after it may read: registers, and words
// of the function's own stack.
type live struct {
	regs  uint16 // bit n is register n
	words uint64 // bit n is the word of eight bytes at 8n-512 from the top
}

func (l live) or(o live) live { return live{l.regs | o.regs, l.words | o.words} }

// words returns the words of the stack that size bytes at off touch.
func words(off, size int64) (w uint64) {
	for i := (off + 512) >> 3; i <= (off+size-1+512)>>3; i++ {
		if 0 <= i && i < 64 {
			w |= 1 << i
		}
	}
	return w
}

// findLive returns what is live before each instruction of a function, or nil if
// loops nest too deeply. Words whose address the function takes are always live: the
// lowest such address and everything above it.
func findLive(code []bpfobj.Insn) []live {
	const rounds = 16
	before := make([]live, len(code))
	at := func(i int) live {
		if i < 0 || i >= len(code) {
			return live{}
		}
		return before[i]
	}
	always := live{words: taken(code)}
	for range rounds {
		changed := false
		for i := len(code) - 1; i >= 0; i-- {
			in := &code[i]
			l := always
			if in.FallsThrough() {
				l = l.or(at(i + in.Slots()))
			}
			if slots, ok := in.Jump(); ok {
				l = l.or(at(i + 1 + slots))
			}
			reads, writes := in.Touches()
			l.regs = l.regs&^uint16(writes) | uint16(reads)
			class, plain := in.Op.Class(), in.Op.Mode() == asm.MemMode
			w := words(int64(in.Off), int64(in.Op.Size().Sizeof()))
			switch store := class == asm.StClass || class == asm.StXClass; {
			case store && plain && in.Dst == asm.RFP:
				l.words = l.words&^w | always.words
			case store && in.Dst == asm.RFP, class == asm.LdXClass && in.Src == asm.RFP:
				l.words |= w
			}
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

// taken returns the words of the stack that a function can reach through other
// registers than r10.
func taken(code []bpfobj.Insn) uint64 {
	lowest := int64(0)
	for i := range code {
		in := &code[i]
		class := in.Op.Class()
		switch {
		case in.Src != asm.RFP:
		case class == asm.StXClass:
			return math.MaxUint64
		case (class == asm.ALUClass || class == asm.ALU64Class) && isRegister(in):
			if in.Op.ALUOp() != asm.Mov || i+1 == len(code) {
				return math.MaxUint64
			}
			add := &code[i+1]
			if add.Op != asm.Add.Op(asm.ImmSource) || add.Dst != in.Dst {
				return math.MaxUint64
			}
			lowest = min(lowest, int64(add.Imm))
		}
	}
	return words(lowest, -lowest)
}

// forgetDead forgets what no instruction will read: two states that differ in
// nothing else are the same.
func (x *explorer) forgetDead(s *state) {
	l := x.liveAt(s.at)
	for r := range s.regs {
		if l.regs&(1<<r) == 0 {
			s.regs[r] = unknown
		}
	}
	for i := len(s.frames) - 1; i >= 0; i-- {
		f := &s.frames[i]
		if dead := func(y slot) bool { return words(int64(y.off), int64(y.size))&l.words == 0 }; slices.ContainsFunc(f.stack, dead) {
			f.own()
			f.stack = slices.DeleteFunc(f.stack, dead)
		}
		l = live{}
		if i > 0 {
			l = x.liveAt(f.ret)
		}
		for j := range f.saved {
			if l.regs&(1<<(int(asm.R6)+j)) == 0 {
				f.saved[j] = unknown
			}
		}
	}
}

func (x *explorer) liveAt(at bpfobj.Site) live {
	if l := x.codeOf(at.Fn).live; l != nil && at.Insn < len(l) {
		return l[at.Insn]
	}
	return live{math.MaxUint16, math.MaxUint64}
}

// widen forgets constants of the code, so that a loop that counts ends before it has counted.
func (s *state) widen() {
	isConstant := func(v value) bool { return v.kind == scalar && !v.isBlank() && v.src == 0 && !v.taint }
	drop := func(v *value) {
		if isConstant(*v) {
			*v = value{m: math.MaxUint64, lost: true}
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
		if slices.ContainsFunc(f.stack, func(y slot) bool { return isConstant(y.val) }) {
			f.own()
			for k := range f.stack {
				drop(&f.stack[k].val)
			}
		}
	}
}
