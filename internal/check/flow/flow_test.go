// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/limits"
)

// Instructions as the tests write them.
var (
	exit    = bpfobj.Insn{Op: bpfobj.OpExit}
	dword   = asm.LoadMemOp(asm.DWord)
	movReg  = asm.OpCode(asm.ALU64Class) | asm.OpCode(asm.RegSource) | asm.OpCode(asm.Mov)
	addImm  = asm.OpCode(asm.ALU64Class) | asm.OpCode(asm.Add)
	helper  = bpfobj.Insn{Op: bpfobj.OpCall, Imm: 14}
	ifZero  = asm.OpCode(asm.JumpClass) | asm.OpCode(asm.JEq)
	toStack = asm.StoreMemOp(asm.DWord)
)

func load(dst, src asm.Register, off int16) bpfobj.Insn {
	return bpfobj.Insn{Op: dword, Dst: dst, Src: src, Off: off}
}
func mov(dst, src asm.Register) bpfobj.Insn { return bpfobj.Insn{Op: movReg, Dst: dst, Src: src} }
func call(fn int) bpfobj.Insn {
	return bpfobj.Insn{Op: bpfobj.OpCall, Src: asm.PseudoCall, Ref: bpfobj.RefTo(bpfobj.RefFunc, fn)}
}

// TestAccesses follows the context and an argument until paths differ in them.
func TestAccesses(t *testing.T) {
	type access struct {
		fn, insn, arg int
		off           int64
	}
	for name, tt := range map[string]struct {
		funcs [][]bpfobj.Insn
		want  []access
	}{
		"argument": {[][]bpfobj.Insn{{load(2, 1, 8), load(0, 2, 40), exit}}, []access{{0, 0, -1, 8}, {0, 1, 1, 40}}},
		"moved":    {[][]bpfobj.Insn{{mov(6, 1), helper, {Op: addImm, Dst: 6, Imm: 8}, load(0, 6, 8), exit}}, []access{{0, 3, -1, 16}}},
		"lost":     {[][]bpfobj.Insn{{helper, load(0, 1, 8), exit}}, nil},
		"spilled": {[][]bpfobj.Insn{{{Op: toStack, Dst: asm.R10, Src: 1, Off: -8}, helper, load(3, 10, -8), load(0, 3, 24), exit}},
			[]access{{0, 3, -1, 24}}},
		"overwritten": {[][]bpfobj.Insn{{{Op: toStack, Dst: asm.R10, Src: 1, Off: -8}, {Op: asm.StoreImmOp(asm.Word), Dst: asm.R10, Off: -4}, load(3, 10, -8), load(0, 3, 24), exit}}, nil},
		// The callee gets the address of the slot, later than the code that reads it.
		"exposed": {[][]bpfobj.Insn{{
			{Op: toStack, Dst: asm.R10, Src: 1, Off: -8},
			load(3, 10, -8), load(0, 3, 24),
			mov(1, asm.R10), {Op: addImm, Dst: 1, Imm: -8}, helper,
			exit,
		}}, nil},
		// On one of two paths r6 changes.
		"joined": {[][]bpfobj.Insn{{mov(6, 1), helper, {Op: ifZero, Off: 1}, mov(6, 0), load(0, 6, 8), exit}}, nil},
		"same":   {[][]bpfobj.Insn{{mov(6, 1), helper, {Op: ifZero, Off: 1}, mov(7, 0), load(0, 6, 8), exit}}, []access{{0, 4, -1, 8}}},
		// On one of two paths r6 has the address of the slot. It is dead where they meet.
		"dead": {[][]bpfobj.Insn{{
			{Op: toStack, Dst: asm.R10, Src: 1, Off: -8}, helper,
			load(3, 10, -8), load(0, 3, 24),
			{Op: ifZero, Off: 2}, mov(6, asm.R10), {Op: addImm, Dst: 6, Imm: -8},
			mov(0, 7), exit,
		}}, []access{{0, 3, -1, 24}}},
		// A loop that increments r1.
		"loop":     {[][]bpfobj.Insn{{load(0, 1, 0), {Op: addImm, Dst: 1, Imm: 8}, {Op: ifZero, Off: -3}, exit}}, nil},
		"function": {[][]bpfobj.Insn{{mov(6, 1), call(1), mov(1, 6), call(1), exit}, {load(0, 1, 16), exit}}, []access{{1, 0, -1, 16}}},
		"mixed":    {[][]bpfobj.Insn{{mov(6, 1), call(1), load(1, 6, 0), call(1), exit}, {load(0, 1, 16), exit}}, []access{{0, 2, -1, 0}}},
		// The arguments of a callback are unknown.
		"callback": {[][]bpfobj.Insn{{{Op: bpfobj.OpLdImm64, Dst: 2, Ref: bpfobj.RefTo(bpfobj.RefFunc, 1)}, {}, call(1), exit}, {load(0, 1, 16), exit}}, nil},
	} {
		o := &bpfobj.Code{}
		p := &bpfobj.Program{}
		for i, code := range tt.funcs {
			o.Funcs = append(o.Funcs, bpfobj.Function{Insns: code})
			p.Funcs = append(p.Funcs, i)
		}
		var got []access
		all, _, _, _ := Accesses(o, p, nil, limits.NewMeter(t.Context(), 1000, ""))
		for _, a := range all {
			got = append(got, access{a.At.Fn, a.At.Insn, a.Arg, a.Off})
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		if got, calls, _, _ := Accesses(o, p, nil, limits.NewMeter(t.Context(), 1, "")); got != nil || calls != nil {
			t.Errorf("%s: %v after one step", name, got)
		}
	}
}

// TestAccessesOfChain checks that the steps grow linearly with the code if one function after the other is found to
// have a caller that is not followed.
func TestAccessesOfChain(t *testing.T) {
	const n = 30_000 // functions that each call the next; a global one calls the first
	o := &bpfobj.Code{Funcs: make([]bpfobj.Function, n+2)}
	o.Funcs[0].Insns = append(o.Funcs[0].Insns, mov(6, 1))
	for i := n; i > 0; i-- {
		o.Funcs[i].Insns = []bpfobj.Insn{call(i + 1), exit}
		o.Funcs[0].Insns = append(o.Funcs[0].Insns, mov(1, 6), call(i))
	}
	o.Funcs[n].Insns = []bpfobj.Insn{load(0, 1, 8), exit}
	o.Funcs[0].Insns = append(o.Funcs[0].Insns, call(n+1), exit)
	o.Funcs[n+1] = bpfobj.Function{Global: true, Insns: []bpfobj.Insn{call(1), exit}}
	p := &bpfobj.Program{Funcs: []int{0}}
	p.Funcs = append(p.Funcs, o.Funcs[0].Calls()...)
	steps := limits.NewMeter(t.Context(), 20*n, "")
	if got, _, _, _ := Accesses(o, p, nil, steps); len(got) > 0 || steps.Err() != nil {
		t.Errorf("%v, %v", got, steps.Err())
	}
}

// TestAccessesOf checks how an address was changed before the access.
func TestAccessesOf(t *testing.T) {
	addReg := asm.OpCode(asm.ALU64Class) | asm.OpCode(asm.RegSource) | asm.OpCode(asm.Add)
	spill := bpfobj.Insn{Op: toStack, Dst: asm.R10, Src: 2, Off: -8}
	toSlot := []bpfobj.Insn{mov(2, asm.R10), {Op: addImm, Dst: 2, Imm: -8}}
	theMap := []bpfobj.Insn{{Op: bpfobj.OpLdImm64, Dst: 1, Ref: bpfobj.RefTo(bpfobj.RefMap, 0)}, {}}
	calls := func(f asm.BuiltinFunc) bpfobj.Insn { return bpfobj.Insn{Op: bpfobj.OpCall, Imm: int64(f)} }
	number := func(r asm.Register, n int64) bpfobj.Insn {
		return bpfobj.Insn{Op: asm.OpCode(asm.ALU64Class) | asm.OpCode(asm.Mov), Dst: r, Imm: n}
	}
	record := func(r asm.Register) bpfobj.Insn { // its value
		in := number(r, 8)
		in.Record = 4
		return in
	}
	readBack := []bpfobj.Insn{load(3, 10, -8), load(0, 3, 24), exit}
	for name, tt := range map[string]struct {
		code []bpfobj.Insn
		want []Access // of the last access
	}{
		"in place":  {[]bpfobj.Insn{load(0, 1, 8), exit}, []Access{{Arg: -1, Off: 8}}},
		"moved":     {[]bpfobj.Insn{{Op: addImm, Dst: 1, Imm: 8}, load(0, 1, 8), exit}, []Access{{Arg: -1, Off: 16, Moved: true}}},
		"computed":  {[]bpfobj.Insn{{Op: addReg, Dst: 1, Src: 3}, load(0, 1, 8), exit}, []Access{{Arg: -1, Off: 8, Computed: true}}},
		"added to":  {[]bpfobj.Insn{{Op: addReg, Dst: 3, Src: 1}, load(0, 3, 8), exit}, []Access{{Arg: -1, Off: 8, Computed: true}}},
		"relocated": {[]bpfobj.Insn{{Op: addImm, Dst: 1, Record: 1, Imm: 8}, load(0, 1, 8), exit}, []Access{{Arg: -1, Off: 8, Computed: true}}},
		"key": {slices.Concat([]bpfobj.Insn{load(2, 1, 16), spill}, toSlot, theMap, []bpfobj.Insn{calls(asm.FnMapLookupElem)}, readBack),
			[]Access{{Arg: 2, Off: 24, Given: true}}},
		"beside": {slices.Concat([]bpfobj.Insn{load(2, 1, 16), spill, mov(2, asm.R10), {Op: addImm, Dst: 2, Imm: -16}}, theMap, []bpfobj.Insn{calls(asm.FnMapLookupElem)}, readBack),
			[]Access{{Arg: 2, Off: 24}}},
		"unknown map": {slices.Concat([]bpfobj.Insn{load(2, 1, 16), spill}, toSlot, []bpfobj.Insn{calls(asm.FnMapLookupElem)}, readBack), nil},
		"written":     {slices.Concat([]bpfobj.Insn{load(2, 1, 16), spill}, toSlot, []bpfobj.Insn{mov(1, 2), number(2, 8), calls(asm.FnProbeReadKernel)}, readBack), nil},
		"output": {slices.Concat([]bpfobj.Insn{load(2, 1, 16), spill}, toSlot, []bpfobj.Insn{mov(4, 2), number(5, 8), calls(asm.FnPerfEventOutput)}, readBack),
			[]Access{{Arg: 2, Off: 24, Given: true}}},
		"returned":       {[]bpfobj.Insn{calls(asm.FnSkcToTcpSock), mov(6, 0), helper, load(0, 6, 24), exit}, []Access{{Arg: -1, Struct: "tcp_sock", Off: 24}}},
		"returned moved": {[]bpfobj.Insn{calls(asm.FnGetCurrentTaskBtf), {Op: addImm, Dst: 0, Imm: 8}, load(0, 0, 24), exit}, []Access{{Arg: -1, Struct: "task_struct", Off: 32}}},
		"returned given": {slices.Concat([]bpfobj.Insn{calls(asm.FnSkcToTcpSock), mov(2, 0), spill}, toSlot, theMap, []bpfobj.Insn{calls(asm.FnMapLookupElem)}, readBack),
			[]Access{{Arg: -1, Struct: "tcp_sock", Off: 24, Given: true}}},
		"typed":             {[]bpfobj.Insn{load(2, 1, 16), {Op: addImm, Dst: 2, Record: 4}, exit}, []Access{{Kind: Typed, Arg: 2, Record: 3}}},
		"typed by register": {[]bpfobj.Insn{record(3), load(2, 1, 16), {Op: addReg, Dst: 2, Src: 3}, exit}, []Access{{Kind: Typed, Arg: 2, Record: 3}}},
		"register typed":    {[]bpfobj.Insn{record(3), load(2, 1, 16), {Op: addReg, Dst: 3, Src: 2}, exit}, []Access{{Kind: Typed, Arg: 2, Record: 3}}},
		"not typed":         {[]bpfobj.Insn{load(2, 1, 16), record(3), {Op: addImm, Dst: 3, Imm: 8}, {Op: addReg, Dst: 2, Src: 3}, exit}, nil},
		"chosen":            {[]bpfobj.Insn{load(2, 1, 16), {Op: ifZero, Off: 1}, load(2, 1, 24), mov(0, 2), exit}, []Access{{Arg: -1, Off: 24, Chosen: true}}},
		"passed":            {[]bpfobj.Insn{load(2, 1, 16), mov(3, 1), {Op: addImm, Dst: 3, Imm: 8}, calls(asm.FnProbeReadKernel), exit}, []Access{{Kind: Passed, Arg: -1, Off: 8}}},
		"context passed":    {[]bpfobj.Insn{load(2, 1, 16), mov(2, 1), number(2, 8), calls(asm.FnGetCurrentComm), exit}, nil},
		"sum":               {[]bpfobj.Insn{{Op: addReg, Dst: 2, Src: 3}, {Op: addImm, Dst: 2, Imm: 8}, load(0, 2, 0), exit}, []Access{{Kind: Summed, Arg: -1}}},
		"sum with constant": {[]bpfobj.Insn{load(2, 1, 16), number(4, 8), {Op: addReg, Dst: 3, Src: 4}, load(0, 3, 0), exit}, nil},
		"sum kept":          {[]bpfobj.Insn{{Op: addReg, Dst: 2, Src: 3}, spill, load(4, 10, -8), load(0, 4, 0), exit}, []Access{{Kind: Summed, Arg: -1}}},
		"sum given":         {slices.Concat(theMap, []bpfobj.Insn{mov(2, 6), {Op: addReg, Dst: 2, Src: 3}, calls(asm.FnMapLookupElem), exit}), []Access{{Kind: Summed, Arg: -1}}},
		"size given":        {slices.Concat([]bpfobj.Insn{load(2, 1, 16), mov(1, 6), calls(asm.FnProbeReadKernel), exit}), []Access{{Kind: Summed, Arg: -1}}},
		"returned number":   {[]bpfobj.Insn{load(2, 1, 16), helper, load(0, 0, 24), exit}, []Access{{Arg: -1, Off: 16}}},
	} {
		o := &bpfobj.Code{Funcs: []bpfobj.Function{{Insns: tt.code}}, Maps: []bpfobj.Map{{KeySize: 8, ValueSize: 8}}}
		got, _, _, _ := Accesses(o, &bpfobj.Program{Funcs: []int{0}}, nil, limits.NewMeter(t.Context(), 1000, ""))
		got = got[max(0, len(got)-1):]
		if tt.want == nil { // the argument is not followed
			tt.want = []Access{{Arg: -1, Off: 16}}
		}
		for i := range got {
			got[i].At, got[i].Size = bpfobj.Site{}, 0
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// TestMapCalls checks which maps, and which memory of ring buffers, helpers are given.
func TestMapCalls(t *testing.T) {
	theMap := func(r asm.Register, n int) []bpfobj.Insn {
		return []bpfobj.Insn{{Op: bpfobj.OpLdImm64, Dst: r, Ref: bpfobj.RefTo(bpfobj.RefMap, n)}, {}}
	}
	calls := func(f asm.BuiltinFunc) bpfobj.Insn { return bpfobj.Insn{Op: bpfobj.OpCall, Imm: int64(f)} }
	lookup, update, reserve := calls(asm.FnMapLookupElem), calls(asm.FnMapUpdateElem), calls(asm.FnRingbufReserve)
	for name, tt := range map[string]struct {
		funcs [][]bpfobj.Insn
		want  []MapCall
	}{
		"none":           {[][]bpfobj.Insn{{lookup, exit}}, nil},
		"first":          {[][]bpfobj.Insn{slices.Concat(theMap(1, 2), []bpfobj.Insn{lookup, exit})}, []MapCall{{At: bpfobj.Site{Insn: 2}, Map: 2}}},
		"second":         {[][]bpfobj.Insn{slices.Concat(theMap(2, 1), []bpfobj.Insn{calls(asm.FnTailCall), exit})}, []MapCall{{At: bpfobj.Site{Insn: 2}, Map: 1}}},
		"kept":           {[][]bpfobj.Insn{slices.Concat(theMap(6, 1), []bpfobj.Insn{helper, mov(1, 6), lookup, exit})}, []MapCall{{At: bpfobj.Site{Insn: 4}, Map: 1}}},
		"one of two":     {[][]bpfobj.Insn{slices.Concat(theMap(1, 1), []bpfobj.Insn{{Op: ifZero, Off: 2}}, theMap(1, 2), []bpfobj.Insn{lookup, exit})}, nil},
		"passed on":      {[][]bpfobj.Insn{slices.Concat(theMap(1, 1), []bpfobj.Insn{call(1), exit}), {lookup, exit}}, []MapCall{{At: bpfobj.Site{Fn: 1}, Map: 1}}},
		"value of ring":  {[][]bpfobj.Insn{{reserve, mov(3, 0), update, exit}}, []MapCall{{At: bpfobj.Site{Insn: 2}, Map: -1, Ring: true}}},
		"both of ring":   {[][]bpfobj.Insn{{reserve, mov(3, 0), mov(2, 0), update, exit}}, []MapCall{{At: bpfobj.Site{Insn: 3}, Map: -1, Ring: true, Both: true}}},
		"key in a map":   {[][]bpfobj.Insn{slices.Concat([]bpfobj.Insn{reserve, mov(2, 0), {Op: addImm, Dst: 2, Imm: 8}}, theMap(1, 0), []bpfobj.Insn{lookup, exit})}, []MapCall{{At: bpfobj.Site{Insn: 5}, Map: 0, Ring: true}}},
		"flags of ring":  {[][]bpfobj.Insn{{reserve, mov(3, 0), lookup, exit}}, nil},
		"no longer ring": {[][]bpfobj.Insn{{reserve, mov(2, 7), lookup, exit}}, nil},
	} {
		o, p := &bpfobj.Code{Maps: make([]bpfobj.Map, 3)}, &bpfobj.Program{}
		for i, code := range tt.funcs {
			o.Funcs = append(o.Funcs, bpfobj.Function{Insns: code})
			p.Funcs = append(p.Funcs, i)
		}
		if _, got, _, _ := Accesses(o, p, nil, limits.NewMeter(t.Context(), 1000, "")); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
