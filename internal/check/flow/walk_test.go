// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/limits"
)

// TestWalks follows pointers from struct to struct.
func TestWalks(t *testing.T) {
	record := func(in bpfobj.Insn, n int) bpfobj.Insn { in.Record = int32(n + 1); return in }
	current := bpfobj.Insn{Op: bpfobj.OpCall, Imm: int64(asm.FnGetCurrentTaskBtf)}
	regs := bpfobj.Insn{Op: bpfobj.OpCall, Imm: int64(asm.FnTaskPtRegs)}
	for name, tt := range map[string]struct {
		section string
		code    []bpfobj.Insn
		steps   string
		uses    []string // instruction, step, offset, records, helper's argument, checked
	}{
		"argument": {"lsm/file_open", []bpfobj.Insn{load(2, 1, 0), load(2, 2, 8), {Op: addImm, Dst: 2, Imm: 4}, load(2, 2, 16), load(0, 2, 24), exit},
			"[-1+8 0+20]", []string{"3 0+20 [] r0 false", "4 1+24 [] r0 false"}},
		"no pointer": {"kprobe/f", []bpfobj.Insn{load(2, 1, 0), load(2, 2, 8), load(0, 2, 24), exit}, "[]", nil},
		"result": {"kprobe/f", []bpfobj.Insn{current, load(1, 0, 8), {Op: ifZero, Dst: 1, Off: 1}, regs, exit},
			"[-1+8]", []string{"3 0+0 [] r1 true"}},
		"records": {"lsm/file_open", []bpfobj.Insn{load(2, 1, 0), record(load(2, 2, 8), 3), record(bpfobj.Insn{Op: addImm, Dst: 2, Imm: 4}, 4), load(0, 2, 24), exit},
			"[-1+0]", []string{"3 0+24 [4] r0 false"}},
		// A list: after the second round, it is not known which element is read.
		"loop": {"lsm/file_open", []bpfobj.Insn{load(2, 1, 0), load(2, 2, 8), {Op: ifZero, Off: -2}, exit}, "[]", nil},
		"joined": {"lsm/file_open", []bpfobj.Insn{load(2, 1, 0), load(3, 2, 8), {Op: ifZero, Off: 1}, load(3, 2, 16), load(0, 3, 0), exit},
			"[]", nil},
		"spilled": {"lsm/file_open", []bpfobj.Insn{load(2, 1, 0), load(3, 2, 8), {Op: toStack, Dst: asm.R10, Src: 3, Off: -8}, helper, load(3, 10, -8), load(0, 3, 0), exit},
			"[-1+8]", []string{"5 0+0 [] r0 false"}},
	} {
		o := &bpfobj.Code{Funcs: []bpfobj.Function{{Insns: tt.code}}}
		p := &bpfobj.Program{Funcs: []int{0}, Attach: bpfobj.SectionOf(tt.section)}
		_, _, _, got := Accesses(o, p, nil, limits.NewMeter(t.Context(), 1000, ""))
		var steps, uses []string
		for _, s := range got.Steps {
			steps = append(steps, fmt.Sprintf("%d+%d", s.From, s.Off))
		}
		for _, u := range got.Uses {
			uses = append(uses, fmt.Sprintf("%d %d+%d %v r%d %t", u.At.Insn, u.From, u.Off, u.Records(), u.Given, u.Checked))
		}
		if fmt.Sprint(steps) != tt.steps || !slices.Equal(uses, tt.uses) {
			t.Errorf("%s: %v, %q, want %s, %q", name, steps, uses, tt.steps, tt.uses)
		}
	}
}

// TestLongWalk checks that a program that follows more pointers than any real one ends there.
func TestLongWalk(t *testing.T) {
	code := []bpfobj.Insn{load(2, 1, 0)}
	for i := range int16(10_000) {
		code = append(code, load(2, 2, i))
	}
	o := &bpfobj.Code{Funcs: []bpfobj.Function{{Insns: append(code, exit)}}}
	p := &bpfobj.Program{Funcs: []int{0}, Attach: bpfobj.SectionOf("lsm/file_open")}
	if _, _, _, got := Accesses(o, p, nil, limits.NewMeter(t.Context(), 100_000, "")); len(got.Steps) != maxSteps || len(got.Uses) != maxSteps {
		t.Errorf("%d steps", len(got.Steps))
	}
}
