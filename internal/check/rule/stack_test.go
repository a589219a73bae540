// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// TestStacksOfCallbacks gives a helper a function with a large stack, which it calls before it returns, or later.
func TestStacksOfCallbacks(t *testing.T) {
	for _, tt := range []struct {
		helper   asm.BuiltinFunc
		callback asm.Register
		bytes    int16
		want     Status
	}{
		{asm.FnLoop, asm.R2, 304, Fails},
		{asm.FnLoop, asm.R2, 200, OK},
		{asm.FnForEachMapElem, asm.R2, 304, Fails},
		{asm.FnTimerSetCallback, asm.R2, 304, OK}, // the callback has a stack of its own
	} {
		address := []insn{{Op: bpfobj.OpLdImm64, Dst: tt.callback, Src: asm.PseudoFunc, Ref: bpfobj.RefTo(bpfobj.RefFunc, 1)}, {}}
		store := insn{Op: 0x7a, Dst: 10, Off: -tt.bytes}
		o := programOf("socket", ending(slices.Concat([]insn{store}, address, []insn{{Op: bpfobj.OpCall, Imm: int64(tt.helper)}})...), ending(store))
		if err := o.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		k := released(uint64(Linux(6, 12)), "x86_64")
		e := &Evaluation{Scene: sceneOn(o, k), pr: &o.Programs[0]}
		e.kind = e.stacks()
		if got := Worst(e.onCode(t.Context())); got != tt.want {
			t.Errorf("%s with %d bytes: %s, want %s", tt.helper, tt.bytes, got, tt.want)
		}
	}
}

// TestStacksOfLateCallbacks gives a helper or kfunc a function that it has called later, which calls another one: only these two have a stack together,
// and verifiers look at it since Linux 6.5.
func TestStacksOfLateCallbacks(t *testing.T) {
	const bytes = 304
	kfunc := insn{Op: bpfobj.OpCall, Src: asm.PseudoKfuncCall, Ref: bpfobj.RefTo(bpfobj.RefExtern, 0)}
	for _, tt := range []struct {
		name     string
		call     insn
		kfunc    string
		callback asm.Register
		below    int16 // bytes of the callback's callee
		release  Release
		want     Status
	}{
		{"timer", insn{Op: bpfobj.OpCall, Imm: int64(asm.FnTimerSetCallback)}, "", asm.R2, bytes, Linux(6, 12), Fails},
		{"timer, old", insn{Op: bpfobj.OpCall, Imm: int64(asm.FnTimerSetCallback)}, "", asm.R2, bytes, Linux(6, 4), OK},
		{"timer, small", insn{Op: bpfobj.OpCall, Imm: int64(asm.FnTimerSetCallback)}, "", asm.R2, 200, Linux(6, 12), OK},
		{"not its argument", insn{Op: bpfobj.OpCall, Imm: int64(asm.FnTimerSetCallback)}, "", asm.R3, bytes, Linux(6, 12), OK},
		{"work queue", kfunc, "bpf_wq_set_callback_impl", asm.R2, bytes, Linux(6, 12), Fails},
		{"task work", kfunc, "bpf_task_work_schedule_signal", asm.R4, bytes, Linux(6, 19), Fails},
		{"another kfunc", kfunc, "bpf_some", asm.R2, bytes, Linux(6, 12), OK},
	} {
		address := []insn{{Op: bpfobj.OpLdImm64, Dst: tt.callback, Src: asm.PseudoFunc, Ref: bpfobj.RefTo(bpfobj.RefFunc, 1)}, {}}
		store := func(n int16) insn { return insn{Op: 0x7a, Dst: 10, Off: -n} }
		below := insn{Op: bpfobj.OpCall, Src: asm.PseudoCall, Ref: bpfobj.RefTo(bpfobj.RefFunc, 2)}
		code := programOf("socket", ending(slices.Concat([]insn{store(bytes)}, address, []insn{{Op: 0xb7}})...), ending(store(bytes), below), ending(store(tt.below))).Code
		code.Externs = []bpfobj.Extern{{Name: tt.kfunc}}
		code.Funcs[0].Insns[3] = tt.call
		o := NewObject("", code, nil)
		if err := o.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		e := &Evaluation{Scene: sceneOn(o, released(uint64(tt.release), "x86_64")), pr: &o.Programs[0]}
		e.kind = e.stacks()
		if got := Worst(e.onCode(t.Context())); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
