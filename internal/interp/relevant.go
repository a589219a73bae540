// SPDX-License-Identifier: Apache-2.0

package interp

import (
	"maps"
	"slices"

	"github.com/cilium/ebpf/asm"
)

// Relevant returns the CO-RE records of which not only whether they are known
// counts, but their values too, ascending: an exploration with the same values of
// these, and other values of others, comes to the same.
//
// Most offsets are added to a pointer of which nothing is known, and are moved
// and spilled on the way there. That does not count. What is computed from a
// value does, and so do comparisons, unless both sides are of the same record: as
// long as nothing is computed they are equal then.
func (r *Result) Relevant() []int { return slices.Sorted(maps.Keys(r.relevant)) }

// Relevant is [Result.Relevant] for a unit and those that it calls.
func (u *Unit) Relevant() []int { return slices.Sorted(maps.Keys(u.relevant)) }

// counts notes that the value of v counts.
func (x *explorer) counts(v value) {
	if v.src > 0 {
		x.u.relevant[int(v.src-1)] = true
	}
}

// countBoth notes that what is equal in two values counts.
func (x *explorer) countBoth(a, b value) {
	if a.src != b.src && a.kind == scalar && b.kind == scalar && a.m != ^uint64(0) && b.m != ^uint64(0) {
		x.counts(a)
		x.counts(b)
	}
}

// countALU notes that the operands of an operation count. One of which nothing
// is known stays so, whatever is added.
func (x *explorer) countALU(op asm.ALUOp, a, b value) {
	if op != asm.Add && op != asm.Sub || a.kind == scalar && b.kind == scalar && a.m != ^uint64(0) && b.m != ^uint64(0) ||
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
