// SPDX-License-Identifier: Apache-2.0

package btf

import "iter"

// A Word says what 32 bits of a type's record hold.
type Word uint8

// The words.
const (
	Data Word = iota // anything else
	Size             // bytes of the type
	Name             // offset of a string
	Ref              // ID of a type
)

// A Shape says what the record of a type consists of. It begins with struct btf_type: a name, the
// kind with flag and vlen, and a third word.
type Shape struct {
	Third Word
	Extra []Word // what follows once
	Elem  []Word // what follows then, vlen times; without it vlen means something else
	Named bool   // relocations can ask for the type by its name
	name  string
}

// shapes has all there is to know of a kind in order to read and write it.
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

// Refs returns how many references the record of a type with this many elements has.
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

// Words yields the words of the record behind struct btf_type.
func (t *Type) Words() iter.Seq2[Word, uint32] {
	return func(yield func(Word, uint32) bool) {
		s, at := t.Kind().Shape(), uint32(0)
		part := func(words []Word) bool {
			for _, w := range words {
				if !yield(w, t.extra(at)) {
					return false
				}
				at++
			}
			return true
		}
		more := part(s.Extra)
		for i := uint32(0); more && len(s.Elem) > 0 && i < t.Vlen(); i++ {
			more = part(s.Elem)
		}
	}
}

// NumKinds is one more than the last kind.
const NumKinds = len(shapes)

// unknown is the shape of kinds that are not in the table.
var unknown Shape

// Shape returns the shape of the kind, which must not be changed: the zero Shape for a kind that is
// not known.
func (k Kind) Shape() *Shape {
	if int(k) < NumKinds {
		return &shapes[k]
	}
	return &unknown
}
