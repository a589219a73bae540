// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"maps"
	"slices"

	"github.com/cilium/ebpf/asm"
)

// Relevant is the part of an input that an exploration depends on: if it is equal, so is the result. Whether records
// are known, externs and settable variables always matter, and are not in it.
//
// Most offsets are only added to an unknown pointer, moved and spilled. Their values do not matter. A value matters if
// something is computed from it or compared with it, unless both sides come from the same record and are equal.
type Relevant struct {
	Records  []int32  // CO-RE records whose values matter, ascending
	Features Features // features that matter
}

// Add makes r depend on what others depend on.
func (r *Relevant) Add(others ...Relevant) {
	for _, o := range others {
		r.Records = append(r.Records, o.Records...)
		r.Features |= o.Features
	}
	slices.Sort(r.Records)
	r.Records = slices.Clone(slices.Compact(r.Records))
}

// Relevant returns what the result depends on.
func (r *Result) Relevant() (out Relevant) {
	all := r.relevant
	for i := range r.parts {
		all = append(all, r.parts[i].summary.relevant)
	}
	out.Add(all...)
	return out
}

// Relevant returns the input that the summary depends on, with those of called functions.
func (sum *Summary) Relevant() Relevant { return sum.relevant }

// depends returns the input that the summary depends on so far, with those of called functions.
func (x *explorer) depends() (out Relevant) {
	all := append(x.unfinished, Relevant{slices.Collect(maps.Keys(x.records)), x.asked})
	for i := range x.summary.uses {
		all = append(all, x.summary.uses[i].summary.relevant)
	}
	out.Add(all...)
	return out
}

// knows reports whether the verifier has features, and notes that they matter.
func (x *explorer) knows(f Features) bool {
	x.asked |= f
	return x.in.Has(f)
}

// counts notes that a value matters.
func (x *explorer) counts(v value) {
	if v.src > 0 {
		x.records[v.src-1] = true
	}
}

// countBoth notes that the comparison of two values matters.
func (x *explorer) countBoth(a, b value) {
	if a.src != b.src && a.kind == scalar && b.kind == scalar && !a.isBlank() && !b.isBlank() {
		x.counts(a)
		x.counts(b)
	}
}

// countALU notes that the operands of an operation matter. Whatever is added to an unknown number, the sum is unknown. A sum
// with 0 is a move.
func (x *explorer) countALU(op asm.ALUOp, a, b value, is32 bool) {
	if zero := constant(0); op == asm.Add && !is32 && (a == zero && b.isConst() || b == zero && a.isConst()) {
		return
	}
	if op != asm.Add && op != asm.Sub || a.kind == scalar && b.kind == scalar && !a.isBlank() && !b.isBlank() ||
		a.keepsOffset() || b.keepsOffset() {
		x.counts(a)
		x.counts(b)
	}
}

// countParts notes that slots matter if a load reads a part of them.
func (x *explorer) countParts(f *frame, off int64, n int) {
	for _, y := range f.stack {
		if lo := int64(y.off); lo < off+int64(n) && off < lo+int64(y.size) && (lo != off || int(y.size) != n) {
			x.counts(y.val)
		}
	}
}
