// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
)

// layout gives members their offsets and composites their size, as C does for
// pointers of ptr bytes. It returns size and alignment in bytes.
func (t *ctype) layout(ptr uint32) (size, align uint32) {
	if t == nil {
		return 0, 1
	}
	switch t.kind {
	case btf.KindPtr:
		return ptr, ptr
	case btf.KindArray:
		size, align = t.ref.layout(ptr)
		return size * t.nelems, align
	case btf.KindStruct, btf.KindUnion:
	case btf.KindInt, btf.KindEnum, btf.KindEnum64, btf.KindFloat:
		return t.size, max(t.size, 1)
	case btf.KindFwd, btf.KindFuncProto, btf.KindFunc:
		return 0, 1
	default:
		if t.sizing { // a typedef of itself
			return 0, 1
		}
		t.sizing = true
		defer func() { t.sizing = false }()
		return t.ref.layout(ptr)
	}
	if t.sizing {
		return 0, 1
	}
	t.sizing = true
	defer func() { t.sizing = false }()
	at, end := uint32(0), uint32(0) // bits
	align = 1
	for _, m := range t.members {
		size, a := m.typ.layout(ptr)
		align = max(align, a)
		if t.kind == btf.KindUnion {
			at = 0
		}
		width := size * 8
		if m.isBits {
			if width = m.bits; width == 0 || at/(size*8) != (at+width-1)/(size*8) {
				at = (at + size*8 - 1) / (size * 8) * size * 8
			}
		} else {
			at = (at + a*8 - 1) / (a * 8) * a * 8
		}
		if m.explicit {
			at = m.off
		}
		m.off = at
		at += width
		end = max(end, at)
	}
	if t.size == math.MaxUint32 {
		t.size = (end + align*8 - 1) / (align * 8) * align
	}
	return t.size, align
}

// writeBTF appends types to b. The first gets the ID first.
func writeBTF(b *btf.Builder, types []*ctype, first btf.TypeID) {
	id := func(t *ctype) uint32 {
		if t == nil {
			return 0
		}
		return uint32(t.id + first - 1)
	}
	var index *ctype
	for _, t := range types {
		if t.kind == btf.KindInt && t.name == "unsigned int" {
			index = t
		}
	}
	for _, t := range types {
		n := len(t.members) + len(t.enum)
		switch t.kind {
		case btf.KindInt:
			b.Type(t.name, t.kind, false, 0, t.size)
			b.Word(t.word)
		case btf.KindArray:
			b.Type("", t.kind, false, 0, 0)
			b.Word(id(t.ref), id(index), t.nelems)
		case btf.KindStruct, btf.KindUnion:
			b.Type(t.name, t.kind, t.flag, n, t.size)
			for _, m := range t.members {
				off := m.off
				if t.flag {
					off |= m.bits << 24
				}
				b.Word(b.String(m.name), id(m.typ), off)
			}
		case btf.KindEnum, btf.KindEnum64:
			b.Type(t.name, t.kind, t.flag, n, t.size)
			for _, e := range t.enum {
				b.Word(b.String(e.name), uint32(e.value))
				if t.kind == btf.KindEnum64 {
					b.Word(uint32(e.value >> 32))
				}
			}
		case btf.KindFuncProto:
			b.Type("", t.kind, false, n, id(t.ref))
			for _, m := range t.members {
				b.Word(b.String(m.name), id(m.typ))
			}
		case btf.KindFwd:
			b.Type(t.name, t.kind, t.flag, 0, 0)
		case btf.KindFloat:
			b.Type(t.name, t.kind, false, 0, t.size)
		case btf.KindFunc:
			b.Type(t.name, t.kind, false, 1, id(t.ref))
		default:
			b.Type(t.name, t.kind, false, 0, id(t.ref))
		}
	}
}

// builtBTF returns the types of src as BTF, on top of base if that is not nil,
// which has so many bytes of strings. extra, if not nil, adds strings.
func builtBTF(src string, order binary.ByteOrder, base *btf.BTF, baseStrings uint32, extra func(*btf.Builder)) ([]byte, error) {
	types, err := parseC(src)
	if err != nil {
		return nil, err
	}
	b := btf.NewBuilder(order)
	first := btf.TypeID(1)
	if base != nil {
		// The strings of split BTF go on where the base's end: one string takes
		// their room, and is cut off again.
		first = btf.TypeID(base.NumTypes())
		b.String(strings.Repeat("x", int(baseStrings)-2))
	}
	writeBTF(b, types, first)
	if extra != nil {
		extra(b)
	}
	raw := b.Bytes()
	if base != nil {
		off := 24 + order.Uint32(raw[16:])
		order.PutUint32(raw[20:], order.Uint32(raw[20:])-baseStrings)
		raw = slices.Delete(raw, int(off), int(off+baseStrings))
	}
	return raw, nil
}
