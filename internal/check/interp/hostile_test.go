// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"runtime"
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// stacks returns functions that call each other as deeply as allowed. Each fills every byte or every eight bytes of its
// stack. The last one is tail.
func stacks(size asm.Size, tail []insn) [][]insn {
	funcs := make([][]insn, maxFrames)
	for f := range funcs {
		for off := -512; off < 0; off += size.Sizeof() {
			funcs[f] = append(funcs[f], insn{Op: asm.StoreImmOp(size), Dst: asm.RFP, Off: int16(off)})
		}
		if f < maxFrames-1 {
			funcs[f] = append(funcs[f], call(f+1), insn{Op: bpfobj.OpExit})
		} else {
			funcs[f] = append(funcs[f], tail...)
		}
	}
	return funcs
}

// branches are n undecided conditional jumps, each to the next.
func branches(n int) []insn {
	code := []insn{{Op: bpfobj.OpCall, Imm: int64(asm.FnGetPrandomU32)}}
	for range n {
		code = append(code, insn{Op: asm.JSet.Op(asm.ImmSource), Dst: 0, Imm: 1})
	}
	return append(code, insn{Op: bpfobj.OpExit})
}

// counting is a loop in which no two states are the same.
func counting() []insn {
	return []insn{
		{Op: asm.Mov.Op(asm.ImmSource), Dst: 6},
		{Op: asm.Add.Op(asm.ImmSource), Dst: 6, Imm: 1},
		{Op: bpfobj.OpCall, Imm: int64(asm.FnGetPrandomU32)},
		{Op: asm.JEq.Op(asm.ImmSource), Dst: 0, Imm: 5, Off: -3},
		{Op: asm.JNE.Op(asm.ImmSource), Dst: 0, Imm: 6, Off: -4},
		{Op: bpfobj.OpExit},
	}
}

// manyCallers is a function with n callers, so it is visited on n stacks.
func manyCallers(n int) [][]insn {
	funcs := [][]insn{nil, branches(8)}
	for i := range n {
		funcs[0] = append(funcs[0], call(2+i))
		funcs = append(funcs, []insn{call(1), {Op: bpfobj.OpExit}})
	}
	funcs[0] = append(funcs[0], insn{Op: bpfobj.OpExit})
	return funcs
}

// TestHostile bounds the memory for exploring hostile programs.
func TestHostile(t *testing.T) {
	slow.Skip(t)
	for name, funcs := range map[string][][]insn{
		"branches on large stacks":   stacks(asm.DWord, branches(145_000)),
		"branches on crowded stacks": stacks(asm.Byte, branches(140_000)),
		"a loop on crowded stacks":   stacks(asm.Byte, counting()),
		"many callers":               manyCallers(4_000),
		"nothing but branches":       {slices.Concat(branches(140_000))},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		run(new(bpfobj.Code), funcs...)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 200<<20 {
			t.Errorf("%s: %d bytes allocated", name, n)
		}
	}
}
