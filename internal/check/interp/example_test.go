// SPDX-License-Identifier: Apache-2.0

package interp_test

import (
	"context"
	"fmt"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// The program of the package's documentation, on a kernel without the field.
func ExampleExplore() {
	code := []bpfobj.Insn{
		{Op: asm.Mov.Op(asm.ImmSource), Dst: asm.R1, Imm: 1, Record: 1},
		{Op: asm.JEq.Op(asm.ImmSource), Dst: asm.R1, Off: 1},
		{Op: asm.Mov.Op(asm.ImmSource), Dst: asm.R1, Imm: 112, Record: 2},
		{Op: asm.Mov.Op(asm.ImmSource), Dst: asm.R0},
		{Op: bpfobj.OpExit},
	}
	o := &bpfobj.Code{Funcs: []bpfobj.Function{{Insns: code}}}
	r := interp.Explore(context.Background(), o, &bpfobj.Program{Funcs: []int{0}}, &interp.Input{
		Record: func(record int) (uint64, bool) { return 0, record == 0 },
	})
	for i := range code {
		at := bpfobj.Site{Insn: i}
		if r.Reached(at) != interp.Unreached {
			continue
		}
		g, _ := r.Guard(at)
		fmt.Printf("%d is not reached: the branch at %d depends on record %d, which is %d\n", i, g.Branch.Insn, g.Origin.Record, g.Origin.V)
	}
	// Output:
	// 2 is not reached: the branch at 1 depends on record 0, which is 0
}
