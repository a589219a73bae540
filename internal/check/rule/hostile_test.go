// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testlimit"
)

func helperCall(n int64) insn { return insn{Op: bpfobj.OpCall, Imm: n} }

// objectOf is an object of n programs that have the same code.
func objectOf(t *testing.T, n int, code []insn, externs ...bpfobj.Extern) *Object {
	o := &bpfobj.Code{Externs: externs}
	for i := range n {
		o.Funcs = append(o.Funcs, bpfobj.Function{Name: fmt.Sprint("p", i), Insns: code})
		o.Programs = append(o.Programs, bpfobj.Program{Fn: i, Funcs: []int{i}})
	}
	return NewObject("hostile", o, noRecords(t))
}

// TestHostileAccesses wants what all programs of an object read of their context
// to be looked for within one limit, and not after the context of the run has ended.
func TestHostileAccesses(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	code := slices.Concat(slices.Repeat([]insn{{Op: asm.Add.Op(asm.ImmSource), Dst: 6}}, 1<<16), []insn{{Op: asm.LoadMemOp(asm.DWord), Dst: 0, Src: 1, Off: 8}, {Op: bpfobj.OpExit}})
	o := objectOf(t, 200, code)
	for i := range o.Programs {
		o.Programs[i].Attach = bpfobj.SectionOf("tp_btf/sched_switch")
	}
	if err := o.follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if first, last := o.accesses[0], o.accesses[199]; len(first) != 1 || last != nil {
		t.Errorf("%v, %v", first, last)
	}
	if err := o.follow(testlimit.Looks(100)); err != context.Canceled {
		t.Errorf("%v", err)
	}
}
