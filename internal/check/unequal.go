// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/interp"
)

// Verifiers before Linux 6.8 learn nothing where a number is compared by != and == with what it can be at least or at
// most ("bpf: make the verifier tracks the "not equal" for regs"), so that code may be within bounds to newer ones alone:
//
//	if (n > 16 || n == 0)
//		return 0;
//	n--;
//	return table[n]; // n may have been 0, and can have any size
//
// Package interp is less precise than any verifier. An access that it finds out of bounds with and without these comparisons is
// not reported; one that it finds out of bounds only without them is. Most programs are explored once for both: see
// [interp.Result.Vague].

// indexes reports whether a function adds numbers to pointers, as far as its code shows.
func indexes(f *bpfobj.Function) bool {
	return slices.ContainsFunc(f.Insns, func(in bpfobj.Insn) bool { return in.Op == asm.Add.Op(asm.RegSource) })
}

// bounded reports whether the kernel's verifier knows bounds, but learns none from !=, and the program may need them.
func (e *evaluation) bounded() bool {
	f := e.k.features
	return f.Has(interp.Ranges) && !f.Has(interp.Unequal) && slices.ContainsFunc(e.pr.Funcs, func(fn int) bool { return e.o.indexes[fn] })
}

// exploreBounds explores the program, after r, as verifiers without and with Unequal where that matters for accesses.
func (e *evaluation) exploreBounds(ctx context.Context, r *exploration) (also explorations) {
	asked := r.Relevant().Features
	if len(r.Far()) == 0 || !asked.Has(interp.Unequal) {
		return nil
	}
	f := e.k.features
	if asked.Has(interp.Partial) && !f.Has(interp.Partial) { // updates of 5.10 have that, and BTF does not show it
		f |= interp.Partial
		r = e.withFeatures(f).explore(ctx)
		also = append(also, r)
	}
	if len(r.vague()) == 0 {
		return also
	}
	return append(also, e.withFeatures(f|interp.Unequal).explore(ctx))
}

// judgeBounds judges the accesses that are out of bounds without Unequal alone.
func (e *evaluation) judgeBounds(x explorations) {
	newer := x[len(x)-1]
	if len(x) == 1 || !newer.features.Has(interp.Unequal) || newer.GaveUp || newer.Odd != interp.NothingOdd {
		return
	}
	r := x[len(x)-2]
	far, still := r.vague(), newer.Far()
	maps.DeleteFunc(far, func(at bpfobj.Site, l interp.Level) bool {
		reached := still[mapped(r.theirs, at)]
		e.doubted = e.doubted || l == interp.Imprecise && reached == interp.Unreached
		return l == interp.Imprecise || reached != interp.Unreached
	})
	if len(far) > 0 { // one is enough
		at := slices.MinFunc(slices.Collect(maps.Keys(far)), func(a, b bpfobj.Site) int { return cmp.Or(cmp.Compare(a.Fn, b.Fn), cmp.Compare(a.Insn, b.Insn)) })
		before := e.explored
		e.explored = r
		e.judge(absence{at: at, f: Finding{Status: MayFail, Code: BoundsUnequal, Subject: "bounds by !=", Source: e.o.Source(at)}})
		e.explored = before
	}
}

// withFeatures is e on the same kernel with another verifier.
func (e *evaluation) withFeatures(f interp.Features) *evaluation {
	k, p, other := *e.k, *e.pairing, *e
	k.features, p.k, other.pairing = f, &k, &p
	return &other
}
