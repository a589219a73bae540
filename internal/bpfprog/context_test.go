// SPDX-License-Identifier: Apache-2.0

package bpfprog

import (
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/limits"
)

// Instructions as the tests write them.
var (
	exit    = Insn{Op: OpExit}
	dword   = asm.LoadMemOp(asm.DWord)
	movReg  = asm.OpCode(asm.ALU64Class) | asm.OpCode(asm.RegSource) | asm.OpCode(asm.Mov)
	addImm  = asm.OpCode(asm.ALU64Class) | asm.OpCode(asm.Add)
	helper  = Insn{Op: OpCall, Imm: 14}
	ifZero  = asm.OpCode(asm.JumpClass) | asm.OpCode(asm.JEq)
	toStack = asm.StoreMemOp(asm.DWord)
)

func load(dst, src asm.Register, off int16) Insn {
	return Insn{Op: dword, Dst: dst, Src: src, Off: off}
}
func mov(dst, src asm.Register) Insn { return Insn{Op: movReg, Dst: dst, Src: src} }
func call(fn int32) Insn {
	return Insn{Op: OpCall, Src: asm.PseudoCall, Ref: Ref{Kind: RefFunc, N: fn}}
}

// TestAccesses follows the context, and an argument, as far as they are what they
// are on all paths.
func TestAccesses(t *testing.T) {
	type access struct {
		fn, insn, arg int
		off           int64
	}
	for name, tt := range map[string]struct {
		funcs [][]Insn
		want  []access
	}{
		"argument": {[][]Insn{{load(2, 1, 8), load(0, 2, 40), exit}}, []access{{0, 0, -1, 8}, {0, 1, 1, 40}}},
		"moved":    {[][]Insn{{mov(6, 1), helper, {Op: addImm, Dst: 6, Imm: 8}, load(0, 6, 8), exit}}, []access{{0, 3, -1, 16}}},
		"lost":     {[][]Insn{{helper, load(0, 1, 8), exit}}, nil},
		"spilled": {[][]Insn{{{Op: toStack, Dst: asm.R10, Src: 1, Off: -8}, helper, load(3, 10, -8), load(0, 3, 24), exit}},
			[]access{{0, 3, -1, 24}}},
		"overwritten": {[][]Insn{{{Op: toStack, Dst: asm.R10, Src: 1, Off: -8}, {Op: asm.StoreImmOp(asm.Word), Dst: asm.R10, Off: -4}, load(3, 10, -8), load(0, 3, 24), exit}}, nil},
		// The callee gets the address of the slot, later than the code that reads it.
		"exposed": {[][]Insn{{
			{Op: toStack, Dst: asm.R10, Src: 1, Off: -8},
			load(3, 10, -8), load(0, 3, 24),
			mov(1, asm.R10), {Op: addImm, Dst: 1, Imm: -8}, helper,
			exit,
		}}, nil},
		// On one of two paths r6 is something else.
		"joined": {[][]Insn{{mov(6, 1), helper, {Op: ifZero, Off: 1}, mov(6, 0), load(0, 6, 8), exit}}, nil},
		"same":   {[][]Insn{{mov(6, 1), helper, {Op: ifZero, Off: 1}, mov(7, 0), load(0, 6, 8), exit}}, []access{{0, 4, -1, 8}}},
		// A loop that moves on.
		"loop":     {[][]Insn{{load(0, 1, 0), {Op: addImm, Dst: 1, Imm: 8}, {Op: ifZero, Off: -3}, exit}}, nil},
		"function": {[][]Insn{{mov(6, 1), call(1), mov(1, 6), call(1), exit}, {load(0, 1, 16), exit}}, []access{{1, 0, -1, 16}}},
		"mixed":    {[][]Insn{{mov(6, 1), call(1), load(1, 6, 0), call(1), exit}, {load(0, 1, 16), exit}}, []access{{0, 2, -1, 0}}},
		// Nobody knows what a callback is called with.
		"callback": {[][]Insn{{{Op: OpLdImm64, Dst: 2, Ref: Ref{Kind: RefFunc, N: 1}}, {}, call(1), exit}, {load(0, 1, 16), exit}}, nil},
	} {
		o := &Object{}
		p := &Program{}
		for i, code := range tt.funcs {
			o.Funcs = append(o.Funcs, Function{Insns: code})
			o.calls = append(o.calls, o.Funcs[i].calls())
			p.Funcs = append(p.Funcs, i)
		}
		var got []access
		for _, a := range o.Accesses(p, limits.NewMeter(t.Context(), 1000, "")) {
			got = append(got, access{a.At.Fn, a.At.Insn, a.Arg, a.Off})
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		if got := o.Accesses(p, limits.NewMeter(t.Context(), 1, "")); got != nil {
			t.Errorf("%s: %v after one step", name, got)
		}
	}
}

// TestAccessesOfChain wants the time to grow with the code where one function after the other turns out to be called
// by one that is not followed.
func TestAccessesOfChain(t *testing.T) {
	const n = 30_000 // functions that each call the next; a global one calls the first
	o := &Object{Funcs: make([]Function, n+2)}
	o.Funcs[0].Insns = append(o.Funcs[0].Insns, mov(6, 1))
	for i := n; i > 0; i-- {
		o.Funcs[i].Insns = []Insn{call(int32(i + 1)), exit}
		o.Funcs[0].Insns = append(o.Funcs[0].Insns, mov(1, 6), call(int32(i)))
	}
	o.Funcs[n].Insns = []Insn{load(0, 1, 8), exit}
	o.Funcs[0].Insns = append(o.Funcs[0].Insns, call(n+1), exit)
	o.Funcs[n+1] = Function{Global: true, Insns: []Insn{call(1), exit}}
	p := &Program{Funcs: []int{0}}
	for i := range o.Funcs {
		o.calls = append(o.calls, o.Funcs[i].calls())
	}
	p.Funcs = append(p.Funcs, o.calls[0]...)
	start := time.Now()
	if got := o.Accesses(p, limits.NewMeter(t.Context(), 1<<22, "")); len(got) > 0 {
		t.Errorf("%v", got)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("%d functions took %v", n, took)
	}
}
