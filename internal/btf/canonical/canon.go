// SPDX-License-Identifier: Apache-2.0

// Package canonical sorts the types of a BTF into an order that depends only on the
// types, and encodes them. The minimizer and the archive share it, so an archive
// returns the bytes that were put in.
package canonical

import (
	"encoding/binary"

	"github.com/btfgen/btfgen/internal/btf"
)

// Type is a BTF type outside a blob.
type Type struct {
	Kind   btf.Kind
	Flag   bool   // kind_flag
	Name   string // empty for anonymous types
	Size   uint32 // bytes; 0 where the record holds a reference instead
	Fields []Field
	Refs   []int // positions in the list of types, or Void, in the order in which the record has them (btf.Shape)
	Copies int   // how many equal types to write; 0 counts as 1
	Order  int   // types with one name are written in this order
}

// Field is a member (Lo is bitfield size<<24 | bit offset with Flag, else the
// bit offset), an enumerator (Lo and Hi are its value), a parameter (no
// value), the encoding word of an INT, the number of elements of an ARRAY, or
// the linkage of a FUNC or VAR.
type Field struct {
	Name   string
	Lo, Hi uint32
}

// Void is the reference to void.
const Void = -1

// Read copies a type from a view, with its references as ref returns them. The
// kind must not be DATASEC.
func Read(t *btf.Type, ref func(btf.TypeID) int) Type {
	o := Type{Kind: t.Kind(), Flag: t.KindFlag(), Name: string(t.Name()), Copies: 1}
	shape, vlen := t.Kind().Shape(), 0
	if len(shape.Elem) > 0 {
		vlen = int(t.Vlen())
		o.Fields = make([]Field, 0, vlen)
	}
	if n := shape.Refs(vlen); n > 0 {
		o.Refs = make([]int, 0, n)
	}
	if shape.Third == btf.Ref {
		o.Refs = append(o.Refs, ref(t.Ref()))
	} else {
		o.Size = t.Size()
	}
	if t.Kind() == btf.KindFunc {
		o.Fields = []Field{{Lo: t.Linkage()}}
	}
	values := 0 // values seen of the last field
	for w, v := range t.Words() {
		switch {
		case w == btf.Ref:
			o.Refs = append(o.Refs, ref(btf.TypeID(v)))
		case w == btf.Name:
			o.Fields = append(o.Fields, Field{Name: string(t.BTF().Name(v))})
			values = 0
		case vlen == 0:
			o.Fields = append(o.Fields, Field{Lo: v})
		case values > 0:
			o.Fields[len(o.Fields)-1].Hi = v
		default:
			o.Fields[len(o.Fields)-1].Lo = v
			values++
			if t.Kind() == btf.KindEnum { // sign-extended
				o.Fields[len(o.Fields)-1].Hi = uint32(int32(v) >> 31)
			}
		}
	}
	return o
}

// AppendContent appends all of o that does not refer to other types. Anonymous types
// sort before named ones, and these by name, because newer versions of libbpf search
// names by bisection.
func (o *Type) AppendContent(b []byte) []byte {
	if o.Name != "" {
		b = append(b, 1)
		b = append(append(b, o.Name...), 0)
	} else {
		b = append(b, 0)
	}
	flag := byte(0)
	if o.Flag {
		flag = 1
	}
	b = append(b, byte(o.Kind), flag)
	b = binary.BigEndian.AppendUint32(b, o.Size)
	b = binary.BigEndian.AppendUint32(b, uint32(len(o.Fields)))
	for _, f := range o.Fields {
		b = append(append(b, f.Name...), 0)
		b = binary.BigEndian.AppendUint32(b, f.Hi)
		b = binary.BigEndian.AppendUint32(b, f.Lo)
	}
	return b
}

// Write encodes types as BTF in a byte order.
func Write(types []*Type, order binary.ByteOrder) []byte {
	b := btf.NewBuilder(order)
	for _, o := range types {
		shape, refs := o.Kind.Shape(), o.Refs
		ref := func() (id uint32) {
			id, refs = uint32(refs[0]+1), refs[1:]
			return id
		}
		words, vlen := shape.Elem, len(o.Fields)
		if len(words) == 0 {
			words, vlen = shape.Extra, 0
		}
		if o.Kind == btf.KindFunc { // vlen is its linkage
			words, vlen = nil, int(o.Fields[0].Lo)
		}
		third := o.Size
		if shape.Third == btf.Ref {
			third = ref()
		}
		b.Type(o.Name, o.Kind, o.Flag, vlen, third)
		for _, f := range o.Fields {
			values := [2]uint32{f.Lo, f.Hi}
			for _, w := range words {
				switch w {
				case btf.Name:
					b.Word(b.String(f.Name))
				case btf.Ref:
					b.Word(ref())
				default:
					b.Word(values[0])
					values[0] = values[1]
				}
			}
		}
	}
	return b.Bytes()
}
