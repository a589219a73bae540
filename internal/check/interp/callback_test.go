// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// TestCallbackGuard hands a guard on the stack to callbacks. In each case main has the guard, 0, at r10-8, and the
// callback gets a pointer to it in the helper's register. The guard protects the third last instruction of the
// callback.
func TestCallbackGuard(t *testing.T) {
	load := func(dst asm.Register, fn int) []insn {
		return []insn{{Op: bpfobj.OpLdImm64, Dst: dst, Ref: bpfobj.RefTo(bpfobj.RefFunc, fn)}, {}}
	}
	context := func(r asm.Register) []insn { // r points to the guard
		return []insn{{Op: 0xbf, Dst: r, Src: 10}, {Op: 0x07, Dst: r, Imm: -8}}
	}
	helper := func(f asm.BuiltinFunc) insn { return insn{Op: bpfobj.OpCall, Imm: int64(f)} }
	store := func(n int64) insn { return insn{Op: 0x7a, Dst: 10, Off: -8, Imm: n} } // *(u64 *)(r10 - 8) = n
	exit := insn{Op: bpfobj.OpExit}
	// guarded is a callback that executes the guarded instruction if *(u64 *)r is 1.
	guarded := func(r asm.Register, before ...insn) []insn {
		return slices.Concat(before, []insn{
			{Op: 0x79, Dst: 6, Src: r},         // r6 = *(u64 *)r
			{Op: 0x55, Dst: 6, Off: 1, Imm: 1}, // if r6 != 1 goto +1
			{Op: bpfobj.OpCall, Imm: 9999},
			{Op: 0xb7},
			exit,
		})
	}
	loop := func(guard int64) []insn {
		return slices.Concat([]insn{store(guard)}, load(2, 1), context(3), []insn{helper(asm.FnLoop), exit})
	}
	for name, tt := range map[string]struct {
		main     []insn
		callback []insn
		more     []insn // another function
		want     Level
	}{
		"not set":       {loop(0), guarded(2), nil, Unreached},
		"set":           {loop(1), guarded(2), nil, Certain},
		"set by itself": {loop(0), guarded(2, insn{Op: 0x7a, Dst: 2, Imm: 1}), nil, Certain},
		"set for the next turn": {loop(0), []insn{
			{Op: 0x79, Dst: 6, Src: 2},
			{Op: 0x7a, Dst: 2, Imm: 1}, // *(u64 *)r2 = 1
			{Op: 0x55, Dst: 6, Off: 1, Imm: 1},
			{Op: bpfobj.OpCall, Imm: 9999},
			{Op: 0xb7},
			exit,
		}, nil, Imprecise}, // verifiers before 6.7 follow one call
		"counted up": {loop(-40), []insn{
			{Op: 0x79, Dst: 6, Src: 2},
			{Op: 0x07, Dst: 6, Imm: 1},
			{Op: 0x7b, Dst: 2, Src: 6}, // *(u64 *)r2 += 1
			{Op: 0x55, Dst: 6, Off: 1, Imm: 1},
			{Op: bpfobj.OpCall, Imm: 9999},
			{Op: 0xb7},
			exit,
		}, nil, Imprecise},
		"for each element": {
			slices.Concat([]insn{store(0)}, load(2, 1), context(3), []insn{helper(asm.FnForEachMapElem), exit}), guarded(4), nil, Unreached,
		},
		"for each element, of the value": {
			slices.Concat([]insn{store(0)}, load(2, 1), context(3), []insn{helper(asm.FnForEachMapElem), exit}), guarded(3), nil, Certain,
		},
		"of a mapping": {
			slices.Concat([]insn{store(0)}, load(3, 1), context(4), []insn{helper(asm.FnFindVma), exit}), guarded(3), nil, Unreached,
		},
		"of a ring buffer": {
			slices.Concat([]insn{store(0)}, load(2, 1), context(3), []insn{helper(asm.FnUserRingbufDrain), exit}), guarded(2), nil, Unreached,
		},
		"in order": {
			slices.Concat(context(3), []insn{store(0)}, load(2, 1), []insn{{Op: 0xb7, Dst: 4}, helper(asm.FnLoop), exit}), guarded(2), nil, Unreached,
		},
		"no context": {
			slices.Concat([]insn{store(0)}, load(2, 1), []insn{{Op: 0xb7, Dst: 3}, helper(asm.FnLoop), exit}), guarded(2), nil, Certain,
		},
		"another helper": {
			slices.Concat([]insn{store(0)}, load(2, 1), context(3), []insn{helper(asm.FnTimerSetCallback), exit}), guarded(2), nil, Certain,
		},
		"kept on the stack": { // addresses on the stack are not followed
			slices.Concat([]insn{store(0)}, load(2, 1), []insn{{Op: 0x7b, Dst: 10, Src: 2, Off: -16}, {Op: 0x79, Dst: 2, Src: 10, Off: -16}}, context(3),
				[]insn{helper(asm.FnLoop), exit}), guarded(2), nil, Certain,
		},
		"one of two": {
			slices.Concat([]insn{store(0), helper(asm.FnGetPrandomU32)}, load(2, 1), []insn{{Op: 0x55, Dst: 0, Off: 2}}, load(2, 2), context(3),
				[]insn{helper(asm.FnLoop), exit}), guarded(2), []insn{{Op: 0xb7}, exit}, Certain,
		},
		"handed on": {
			slices.Concat([]insn{store(0)}, context(1), []insn{call(2), exit}), guarded(2),
			slices.Concat([]insn{{Op: 0xbf, Dst: 3, Src: 1}}, load(2, 1), []insn{helper(asm.FnLoop), exit}), Unreached,
		},
		"in a callback": {
			slices.Concat([]insn{store(0)}, load(2, 2), context(3), []insn{helper(asm.FnLoop), exit}), guarded(2),
			slices.Concat([]insn{{Op: 0xbf, Dst: 3, Src: 2}}, load(2, 1), []insn{helper(asm.FnLoop), {Op: 0xb7}, exit}), Unreached,
		},
	} {
		r := run(new(bpfobj.Code), tt.main, tt.callback, tt.more)
		if got := r.Reached(bpfobj.Site{Fn: 1, Insn: len(tt.callback) - 3}); got != tt.want || r.GaveUp || r.Odd != NothingOdd {
			t.Errorf("%s: level %d, want %d; gave up: %t, odd: %d", name, got, tt.want, r.GaveUp, r.Odd)
		}
		if got := r.Reached(bpfobj.Site{Insn: len(tt.main) - 1}); got != Certain {
			t.Errorf("%s: the end is reached at level %d", name, got)
		}
	}
}

// TestCallbackEffect checks what callbacks write to the caller's stack in zero, one or several turns.
func TestCallbackEffect(t *testing.T) {
	for want, reached := range map[int64]bool{0: true, 1: true, 2: true, 7: false} {
		main := []insn{
			{Op: 0x7a, Dst: 10, Off: -8}, // *(u64 *)(r10 - 8) = 0
			{Op: 0x7a, Dst: 10, Off: -16, Imm: 5},
			{Op: 0xb7, Dst: 8, Imm: 3}, // r8 = 3
			{Op: bpfobj.OpLdImm64, Dst: 2, Ref: bpfobj.RefTo(bpfobj.RefFunc, 1)}, {},
			{Op: 0xbf, Dst: 3, Src: 10},
			{Op: 0x07, Dst: 3, Imm: -8},
			{Op: bpfobj.OpCall, Imm: int64(asm.FnLoop)},
			{Op: 0x79, Dst: 7, Src: 10, Off: -16},
			{Op: 0x55, Dst: 7, Off: 4, Imm: 5}, // if r7 != 5 goto the end
			{Op: 0x55, Dst: 8, Off: 3, Imm: 3}, // if r8 != 3 goto the end
			{Op: 0x79, Dst: 9, Src: 10, Off: -8},
			{Op: 0x15, Dst: 9, Off: 1, Imm: want}, // if r9 == want goto the end
			{Op: bpfobj.OpExit},
			{Op: bpfobj.OpExit},
		}
		callback := []insn{ // 0 becomes 1, anything else 2
			{Op: 0xb7, Dst: 8, Imm: 9},
			{Op: 0x79, Dst: 6, Src: 2},
			{Op: 0x55, Dst: 6, Off: 2}, // if r6 != 0 goto +2
			{Op: 0x7a, Dst: 2, Imm: 1},
			{Op: 0x05, Off: 1},
			{Op: 0x7a, Dst: 2, Imm: 2},
			{Op: 0xb7},
			{Op: bpfobj.OpExit},
		}
		if got := reaches(new(bpfobj.Code), main, callback); got != reached {
			t.Errorf("%d is on the stack: %t", want, got)
		}
	}
}

// TestWritesFromPointer has helpers and kfuncs write through a pointer to the stack: slots below the pointer stay
// known.
func TestWritesFromPointer(t *testing.T) {
	at := func(r asm.Register, off int64) []insn {
		return []insn{{Op: 0xbf, Dst: r, Src: 10}, {Op: 0x07, Dst: r, Imm: off}}
	}
	probe := []insn{{Op: 0xb7, Dst: 2, Imm: 8}, {Op: bpfobj.OpCall, Imm: int64(asm.FnProbeReadKernel)}}
	kfunc := []insn{{Op: bpfobj.OpCall, Src: asm.PseudoKfuncCall}}
	for name, tt := range map[string]struct {
		code    []insn
		reached bool
	}{
		"above":                       {append(at(1, -16), probe...), false},
		"onto it":                     {append(at(1, -24), probe...), true},
		"an argument that is read":    {slices.Concat(at(1, -48), at(3, -24), probe), false},
		"what is no argument":         {slices.Concat(at(1, -48), at(4, -32), probe), false},
		"a kfunc, above":              {append(at(1, -16), kfunc...), false},
		"a kfunc, onto it":            {append(at(1, -24), kfunc...), true},
		"a kfunc, from below":         {append(at(1, -64), kfunc...), true},
		"a kfunc, the last argument":  {append(at(5, -64), kfunc...), true},
		"a helper that is not known":  {slices.Concat(at(1, -48), at(4, -32), []insn{{Op: bpfobj.OpCall, Imm: 500}}), true},
		"a helper with no known size": {append(at(1, -64), insn{Op: bpfobj.OpCall, Imm: int64(asm.FnProbeReadKernel)}), true},
	} {
		main := slices.Concat([]insn{{Op: 0x7a, Dst: 10, Off: -24}}, tt.code, []insn{ // *(u64 *)(r10 - 24) = 0
			{Op: 0x79, Dst: 9, Src: 10, Off: -24},
			{Op: 0x55, Dst: 9, Off: 1}, // if r9 != 0 goto +1
			{Op: bpfobj.OpExit},
			{Op: bpfobj.OpExit},
		})
		if got := reaches(new(bpfobj.Code), main); got != tt.reached {
			t.Errorf("%s: %t", name, got)
		}
	}
}
