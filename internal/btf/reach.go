// SPDX-License-Identifier: Apache-2.0

package btf

// Reach says how far something looks from a type on. The zero value is not at all; what is more has all of what is less.
type Reach uint8

// How far.
const (
	// ReachValue is all that a type has by value: what it refers to, and what that does, but not what pointers lead to.
	ReachValue Reach = 1 + iota

	// ReachPointees is, besides, what pointers lead to that no member of a struct or union leads to.
	ReachPointees

	// ReachAll is all that a type leads to in any way.
	ReachAll
)

// Then returns how far to look from what a type of kind k refers to, if from the type itself it is r.
func (r Reach) Then(k Kind) Reach {
	switch {
	case r == ReachValue && k == KindPtr:
		return 0
	case r == ReachPointees && k.IsComposite():
		return ReachValue
	}
	return r
}
