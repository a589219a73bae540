// SPDX-License-Identifier: Apache-2.0

package btf

import (
	"errors"
	"math"
	"slices"

	"github.com/btfgen/btfgen/internal/limits"
)

// Errors of following references.
var (
	ErrDepth  = errors.New("types refer to each other without end")
	ErrNoSize = errors.New("type has no size")
	ErrTooBig = errors.New("size exceeds 32 bits")
)

// SkipMods follows modifiers and typedefs, as skip_mods_and_typedefs of libbpf does.
// It reports false for an endless chain.
func (b *BTF) SkipMods(id TypeID) (Type, bool) {
	t := b.Type(id)
	for range limits.Modifiers {
		if k := t.Kind(); !k.IsMod() && k != KindTypedef {
			return t, true
		}
		t = b.Type(t.Ref())
	}
	return t, false
}

// SizeOf returns the size of a type in bytes by the rules of libbpf's
// btf__resolve_size. It follows modifiers, typedefs and arrays. Void, fwd and
// functions have no size.
func (b *BTF) SizeOf(id TypeID) (uint32, error) { return b.SizeWith(b.PointerSize(), id) }

// SizeWith is SizeOf for pointers of this many bytes.
func (b *BTF) SizeWith(pointer uint32, id TypeID) (uint32, error) {
	size, nelems := uint64(0), uint64(1)
	for range limits.Modifiers {
		t := b.Type(id)
		switch k := t.Kind(); {
		case k.Shape().Third == Size:
			size = uint64(t.Size())
		case k == KindPtr:
			size = uint64(pointer)
		case k.IsMod(), k == KindTypedef, k == KindVar, k == KindDeclTag:
			id = t.Ref()
			continue
		case k == KindArray:
			a := t.Array()
			if nelems *= uint64(a.Nelems); nelems > math.MaxUint32 {
				return 0, ErrTooBig
			}
			id = a.Elem
			continue
		default:
			return 0, ErrNoSize
		}
		if size *= nelems; size > math.MaxUint32 {
			return 0, ErrTooBig
		}
		return uint32(size), nil
	}
	return 0, ErrDepth
}

// PointerSize returns the bytes of a pointer: the size of the first INT named long in
// any of its spellings, or else 8, as libbpf does on a 64-bit host.
func (b *BTF) PointerSize() uint32 {
	if b.ptr == 0 {
		return 8
	}
	return b.ptr
}

// LongNames are the spellings of C's long.
var LongNames = []string{
	"long", "long int", "int long", "unsigned long", "long unsigned",
	"unsigned long int", "unsigned int long", "long unsigned int",
	"long int unsigned", "int unsigned long", "int long unsigned",
}

// pointerSize returns the size of t if it is a long, otherwise 0.
func (t Type) pointerSize() uint32 {
	if (t.size == 4 || t.size == 8) && slices.ContainsFunc(LongNames, func(s string) bool { return t.btf.NameIs(t.NameOff, s) }) {
		return t.size
	}
	return 0
}

// HasMember reports whether a struct or union has a member of a name, itself or in its
// anonymous members. It does not find a member that is nested deeper than the limits.
func (b *BTF) HasMember(t *Type, name string) bool {
	looks := limits.MemberLooks
	return b.nestedMember(t, name, limits.MemberNesting, &looks)
}

func (b *BTF) nestedMember(t *Type, name string, depth int, looks *int) bool {
	if depth == 0 || !t.Kind().IsComposite() {
		return false
	}
	for i := range t.Vlen() {
		if *looks--; *looks < 0 {
			return false
		}
		m := t.Member(i)
		if m.NameOff != 0 {
			if b.NameIs(m.NameOff, name) {
				return true
			}
			continue
		}
		if inner, ok := b.SkipMods(m.Type); ok && b.nestedMember(&inner, name, depth-1, looks) {
			return true
		}
	}
	return false
}

// Reach limits which references are followed from a type. The zero value follows none.
// Each value includes the references of the values before it.
type Reach uint8

// The limits.
const (
	ReachValue    Reach = 1 + iota // everything but what pointers lead to
	ReachPointees                  // also what pointers lead to, except for pointers in members of a struct or union
	ReachAll                       // everything
)

// Then returns the limit for the types that a type of kind k refers to, if the limit
// for the type itself is r.
func (r Reach) Then(k Kind) Reach {
	switch {
	case r == ReachValue && k == KindPtr:
		return 0
	case r == ReachPointees && k.IsComposite():
		return ReachValue
	}
	return r
}
