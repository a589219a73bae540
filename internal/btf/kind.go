// SPDX-License-Identifier: Apache-2.0

package btf

import (
	"fmt"
	"iter"
)

// TypeID is the number of a type in a blob, from 1. The zero value is void.
type TypeID uint32

// Kind is the BTF_KIND_* of a type. The zero value is void.
type Kind uint8

// The kinds of include/uapi/linux/btf.h.
const (
	KindVoid Kind = iota
	KindInt
	KindPtr
	KindArray
	KindStruct
	KindUnion
	KindEnum
	KindFwd
	KindTypedef
	KindVolatile
	KindConst
	KindRestrict
	KindFunc
	KindFuncProto
	KindVar
	KindDatasec
	KindFloat
	KindDeclTag
	KindTypeTag
	KindEnum64
)

// Word is the meaning of 32 bits of a type's record.
type Word uint8

// The words.
const (
	Data Word = iota // any other value
	Size             // bytes of the type
	Name             // offset of a string
	Ref              // ID of a type
)

// Shape describes the records of a kind. They begin with struct btf_type: a name, the
// kind with flag and vlen, and a third word.
type Shape struct {
	Third Word
	Extra []Word // words that follow struct btf_type once
	Elem  []Word // words that follow vlen times; if there are none, vlen has another meaning
	Named bool   // relocations can name types of the kind
	name  string
}

// shapes describes the records of all kinds.
var shapes = [...]Shape{
	KindVoid:      {name: "void"},
	KindInt:       {name: "int", Named: true, Third: Size, Extra: []Word{Data}},
	KindPtr:       {name: "ptr", Third: Ref},
	KindArray:     {name: "array", Extra: []Word{Ref, Ref, Data}}, // element, index, number of elements
	KindStruct:    {name: "struct", Named: true, Third: Size, Elem: []Word{Name, Ref, Data}},
	KindUnion:     {name: "union", Named: true, Third: Size, Elem: []Word{Name, Ref, Data}},
	KindEnum:      {name: "enum", Named: true, Third: Size, Elem: []Word{Name, Data}},
	KindFwd:       {name: "fwd", Named: true},
	KindTypedef:   {name: "typedef", Named: true, Third: Ref},
	KindVolatile:  {name: "volatile", Third: Ref},
	KindConst:     {name: "const", Third: Ref},
	KindRestrict:  {name: "restrict", Third: Ref},
	KindFunc:      {name: "func", Third: Ref},
	KindFuncProto: {name: "func_proto", Third: Ref, Elem: []Word{Name, Ref}},
	KindVar:       {name: "var", Third: Ref, Extra: []Word{Data}},
	KindDatasec:   {name: "datasec", Third: Size, Elem: []Word{Ref, Data, Data}},
	KindFloat:     {name: "float", Named: true, Third: Size},
	KindDeclTag:   {name: "decl_tag", Third: Ref, Extra: []Word{Data}},
	KindTypeTag:   {name: "type_tag", Third: Ref},
	KindEnum64:    {name: "enum64", Named: true, Third: Size, Elem: []Word{Name, Data, Data}},
}

// hdrWords is the size of struct btf_type in 32-bit words.
const hdrWords = 3

// NumKinds is one more than the last kind.
const NumKinds = len(shapes)

var unknown Shape

// Shape returns the shape of the kind, which must not be changed. An unknown kind has
// the zero Shape.
func (k Kind) Shape() *Shape {
	if int(k) < NumKinds {
		return &shapes[k]
	}
	return &unknown
}

// Refs returns the number of references in a record with this many elements.
func (s *Shape) Refs(elems int) (n int) {
	for _, w := range s.Elem {
		if w == Ref {
			n += elems
		}
	}
	for _, w := range s.Extra {
		if w == Ref {
			n++
		}
	}
	if s.Third == Ref {
		n++
	}
	return n
}

// Words yields the words of the record that follow struct btf_type.
func (t Type) Words() iter.Seq2[Word, uint32] {
	return func(yield func(Word, uint32) bool) {
		s, at := t.Kind().Shape(), uint32(0)
		for _, w := range s.Extra {
			if !yield(w, t.extra(at)) {
				return
			}
			at++
		}
		for i := uint32(0); len(s.Elem) > 0 && i < t.Vlen(); i++ {
			for _, w := range s.Elem {
				if !yield(w, t.extra(at)) {
					return
				}
				at++
			}
		}
	}
}

// Refs yields the references in the record, in its order.
func (t Type) Refs() iter.Seq[TypeID] {
	return func(yield func(TypeID) bool) {
		if t.Kind().Shape().Third == Ref && !yield(t.Ref()) {
			return
		}
		for w, v := range t.Words() {
			if w == Ref && !yield(TypeID(v)) {
				return
			}
		}
	}
}

// String returns libbpf's name of the kind.
func (k Kind) String() string {
	if int(k) < NumKinds {
		return shapes[k].name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// IsComposite reports whether k is a struct or a union.
func (k Kind) IsComposite() bool { return k == KindStruct || k == KindUnion }

// IsAnyEnum reports whether k is a 32-bit or a 64-bit enum.
func (k Kind) IsAnyEnum() bool { return k == KindEnum || k == KindEnum64 }

// IsMod reports whether libbpf calls k a modifier: const, volatile, restrict or a type
// tag.
func (k Kind) IsMod() bool {
	return k == KindConst || k == KindVolatile || k == KindRestrict || k == KindTypeTag
}

// Compat reports whether libbpf treats a and b as one kind: they are equal, or both
// are enums of any width.
func (k Kind) Compat(o Kind) bool {
	return k == o || k.IsAnyEnum() && o.IsAnyEnum()
}

// Bits of the encoding of an INT.
const (
	IntSigned = 1 << 0
	IntChar   = 1 << 1
	IntBool   = 1 << 2
)
