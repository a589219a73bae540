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

// SkipMods follows modifiers and typedefs from id to what they stand for
// (skip_mods_and_typedefs of libbpf). It reports false for an endless chain.
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

// SizeOf returns the size of a type in bytes, by the rules of libbpf's
// btf__resolve_size: modifiers, typedefs and arrays are followed, void, fwd
// and functions have none.
func (b *BTF) SizeOf(id TypeID) (uint32, error) {
	size, nelems := uint64(0), uint64(1)
	for range limits.Modifiers {
		t := b.Type(id)
		switch k := t.Kind(); {
		case k.Shape().Third == Size:
			size = uint64(t.Size())
		case k == KindPtr:
			size = uint64(b.PointerSize())
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

// PointerSize returns the bytes of a pointer: the size of the first INT named
// long in any of its spellings, or 8 when there is none, which is what libbpf
// falls back to on a 64-bit host.
func (b *BTF) PointerSize() uint32 {
	if b.ptr == 0 {
		return 8
	}
	return b.ptr
}

// LongNames are the spellings of C's long, from which [BTF.PointerSize] tells.
var LongNames = []string{
	"long", "long int", "int long", "unsigned long", "long unsigned",
	"unsigned long int", "unsigned int long", "long unsigned int",
	"long int unsigned", "int unsigned long", "int long unsigned",
}

// pointerSize returns t's size when t is a long, otherwise 0.
func (t *Type) pointerSize() uint32 {
	if t.size != 4 && t.size != 8 {
		return 0
	}
	if slices.ContainsFunc(LongNames, func(s string) bool { return t.b.NameIs(t.NameOff, s) }) {
		return t.size
	}
	return 0
}
