// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"context"
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// watched is a context that counts how often it is checked, and ends after a number of checks.
type watched struct {
	context.Context
	looks, ends int
}

func (w *watched) Err() error {
	if w.looks++; w.looks > w.ends {
		return context.Canceled
	}
	return nil
}

// TestContext checks that the context is checked regularly, and that the work ends with it.
func TestContext(t *testing.T) {
	const often = 10_000 // units of work, of some nanoseconds each
	for name, funcs := range map[string][][]insn{
		"branches": stacks(asm.DWord, branches(145_000)),
		"long":     {slices.Repeat([]insn{{Op: asm.Mov.Op(asm.ImmSource), Dst: 6}}, 140_000)},
	} {
		o, pr := new(bpfobj.Code), new(bpfobj.Program)
		for i, code := range funcs {
			o.Funcs, pr.Funcs = append(o.Funcs, bpfobj.Function{Insns: code}), append(pr.Funcs, i)
		}
		all := &watched{Context: t.Context(), ends: 1 << 30}
		whole := Explore(all, o, pr, new(Input))
		if whole.Work > often*(all.looks+1) {
			t.Errorf("%s: %d looks at the context in %d units of work", name, all.looks, whole.Work)
		}
		if r := Explore(&watched{Context: t.Context(), ends: 2}, o, pr, new(Input)); !r.GaveUp || r.Work > 3*often {
			t.Errorf("%s: %d units of work after the context ended, gave up: %t", name, r.Work, r.GaveUp)
		}
	}
}
