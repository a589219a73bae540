// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/btfgen/btfgen/internal/rawbtf"

// Reach notes, by the names of candidates without flavors, how far from these the relocations of o look; of several the farthest
// counts. It reports false where more counts than the types that they look at, in their order.
//
// It is what walk.go and match.go do, seen from the kernel's side:
//
//   - Fields and enumerators are found, and compared with the local ones, by value: relField ends at pointers.
//   - relExists goes through pointers, elements and prototypes, and ends at structs and unions.
//   - relMatches goes anywhere.
//   - The value of a target_type_id is a type ID. What counts is whether it is that of another candidate, and for loads and
//     stores, where no compiler has one, whether it fits.
//
// What the minimizer keeps if its first proof holds is within that, too: it follows the pointers that a match went
// through, and gives structs of one name the same members.
func (o *Object) Reach(names map[string]rawbtf.Reach) bool {
	for i := range o.records {
		r := &o.records[i]
		s := o.specs[r.spec]
		if class := r.insn.code & 7; s.kind == KindTargetTypeID && r.insn.ok && (class == classLDX || class == classST || class == classSTX) {
			return false
		}
	}
	for _, s := range o.specs {
		if !s.asks() {
			continue
		}
		r := rawbtf.ReachValue
		switch {
		case s.kind == KindTypeMatches:
			r = rawbtf.ReachAll
		case s.kind.IsType():
			r = rawbtf.ReachPointees
		}
		names[s.name()] = max(names[s.name()], r)
	}
	return true
}
