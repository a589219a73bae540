// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"maps"
	"slices"

	"github.com/cilium/ebpf/asm"
)

// Relevant is what of an input an exploration depends on, besides whether records
// are known and what is said of externs and variables: with the same of it, and other values of
// the rest, it comes to the same.
//
// Most offsets are added to a pointer of which nothing is known, and are moved
// and spilled on the way there. That does not count. What is computed from a
// value does, and so do comparisons, unless both sides are of the same record: as
// long as nothing is computed they are equal then.
type Relevant struct {
	Records  []int32  // of CO-RE, whose values count; ascending
	Features Features // those that were asked for
}

// Add makes r depend on what others do.
func (r *Relevant) Add(others ...Relevant) {
	for _, o := range others {
		r.Records = append(r.Records, o.Records...)
		r.Features = r.Features.or(o.Features)
	}
	slices.Sort(r.Records)
	r.Records = slices.Clone(slices.Compact(r.Records))
}

// Relevant returns what the result depends on.
func (r *Result) Relevant() Relevant {
	all := r.relevant
	for i := range r.parts {
		all = append(all, r.parts[i].u.relevant)
	}
	var out Relevant
	out.Add(all...)
	return out
}

// Relevant returns what the unit and those that it calls depend on.
func (u *Unit) Relevant() Relevant { return u.relevant }

// counts notes that the value of v counts.
func (x *explorer) counts(v value) {
	if v.src > 0 {
		x.records[v.src-1] = true
	}
}

// depends returns what counts in the unit and those that it calls.
func (x *explorer) depends() Relevant {
	all := append(x.unfinished, Relevant{slices.Collect(maps.Keys(x.records)), x.asked})
	for i := range x.u.uses {
		all = append(all, x.u.uses[i].u.relevant)
	}
	var out Relevant
	out.Add(all...)
	return out
}

// countBoth notes that what is equal in two values counts.
func (x *explorer) countBoth(a, b value) {
	if a.src != b.src && a.kind == scalar && b.kind == scalar && !a.isBlank() && !b.isBlank() {
		x.counts(a)
		x.counts(b)
	}
}

// countALU notes that the operands of an operation count. One of which nothing
// is known stays so, whatever is added.
func (x *explorer) countALU(op asm.ALUOp, a, b value) {
	if op != asm.Add && op != asm.Sub || a.kind == scalar && b.kind == scalar && !a.isBlank() && !b.isBlank() ||
		a.keepsOffset() || b.keepsOffset() {
		x.counts(a)
		x.counts(b)
	}
}

// countParts notes that slots count of which a load reads a part.
func (x *explorer) countParts(f *frame, off int64, n int) {
	for _, y := range f.stack {
		if lo := int64(y.off); lo < off+int64(n) && off < lo+int64(y.size) && (lo != off || int(y.size) != n) {
			x.counts(y.val)
		}
	}
}
