// SPDX-License-Identifier: Apache-2.0

package core

import (
	"math"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relo"
)

// maxLevel bounds recursion and chains, as libbpf does.
const maxLevel = 32

// typeName returns how C names a type: "struct task_struct", "u64".
func typeName(t btf.Type) string {
	name := string(t.Name())
	if name == "" {
		name = "<anon>"
	}
	switch k := t.Kind(); k {
	case btf.KindStruct, btf.KindUnion, btf.KindFunc, btf.KindVar:
		return k.String() + " " + name
	case btf.KindEnum, btf.KindEnum64:
		return "enum " + name
	case btf.KindFwd:
		if t.KindFlag() {
			return "union " + name
		}
		return "struct " + name
	case btf.KindInt, btf.KindFloat, btf.KindTypedef:
		return name
	case btf.KindVoid:
		return "void"
	default:
		return k.String()
	}
}

// BitfieldInt reports whether t is an integer that old BTF uses for bitfields.
func BitfieldInt(t btf.Type) bool {
	return t.Kind() == btf.KindInt && (t.IntOffset() > 0 || t.IntData()&0xff/8 != t.Size())
}

// element returns a type without modifiers, of an array the innermost elements'.
func element(b *btf.BTF, id btf.TypeID) btf.Type {
	for range maxLevel {
		t, ok := b.SkipMods(id)
		if !ok || t.Kind() != btf.KindArray {
			return t
		}
		id = t.Array().Elem
	}
	return btf.Type{}
}

// ciliumMember returns a member. Where the struct has no bitfields of its own,
// a type of fewer bits than it has bytes for makes one.
func ciliumMember(t *btf.Type, i uint32) btf.Member {
	m := t.Member(i)
	if in := t.BTF().Type(m.Type); !t.KindFlag() && BitfieldInt(in) {
		m.BitOffset += in.IntOffset()
		m.BitSize = in.IntData() & 0xff
	}
	return m
}

// ciliumSize is the size of a type in bytes, where pointers have 8 (Sizeof in
// btf/types.go).
func ciliumSize(b *btf.BTF, id btf.TypeID) (uint64, error) {
	if t, ok := b.SkipMods(id); ok && t.Kind() == btf.KindVoid {
		return 0, nil
	}
	size, err := b.SizeWith(8, id)
	if err == nil && size > math.MaxInt32 {
		err = btf.ErrTooBig
	}
	return uint64(size), err
}

// ciliumAlign is the alignment of a bitfield's type (alignof in btf/types.go).
func ciliumAlign(b *btf.BTF, id btf.TypeID) (uint32, error) {
	for range limits.Modifiers {
		t, ok := b.SkipMods(id)
		switch k := t.Kind(); {
		case ok && k == btf.KindArray:
			id = t.Array().Elem
			continue
		case ok && (k.IsAnyEnum() || k == btf.KindInt) && t.Size() > 0 && t.Size()&(t.Size()-1) == 0:
			return t.Size(), nil
		}
		break
	}
	return 0, fault{Cause: relo.CauseAlignment}
}
