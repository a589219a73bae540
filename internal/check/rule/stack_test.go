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
