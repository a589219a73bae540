// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
)

// Need is a part of the target that a match depends on, in addition to kind and
// size of the types on its path.
type Need struct {
	Type btf.TypeID // type that is needed, never a modifier
	What What
	Idx  uint32 // member or enumerator, by What
}

// What says which part of a type a [Need] is about.
type What uint8

const (
	NeedMember     What = iota // struct or union: the type and member Idx, whose own type is needed by kind and size
	NeedEnumerator             // enum: the type and enumerator Idx
	NeedPointee                // pointer: its target
	NeedIndex                  // array: its index type
)

// needs are the parts of the target that a match depends on.
type needs []Need

func (l *needs) add(id btf.TypeID, what What, idx uint32) { *l = append(*l, Need{id, what, idx}) }

// atLeast keeps n members or enumerators of t: a type with fewer than the local
// one matches nothing, and several local names may have been found in one.
// chosen are those that were found, one for each local name.
func (l *needs) atLeast(n uint32, t btf.Type, what What, chosen []uint32) {
	slices.Sort(chosen)
	if len(slices.Compact(chosen)) == int(n) {
		return
	}
	seen := make(map[uint32]bool)
	for _, nd := range *l {
		if nd.Type == t.ID && nd.What == what {
			seen[nd.Idx] = true
		}
	}
	for i := uint32(0); i < t.Vlen() && uint32(len(seen)) < n; i++ {
		if !seen[i] {
			seen[i] = true
			l.add(t.ID, what, i)
		}
	}
}
