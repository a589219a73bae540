// SPDX-License-Identifier: Apache-2.0

// Package canon puts the types of a BTF into an order that depends on nothing
// but the types, and encodes them. The minimizer and the archive share it, so
// that what comes out of an archive has the bytes that went in.
package canon

import (
	"encoding/binary"

	"github.com/btfgen/btfgen/internal/btfenc"
)

// Type is a type of the output.
type Type struct {
	Kind   btfenc.Kind
	Flag   bool   // kind_flag
	Name   string // empty for anonymous types
	Size   uint32 // bytes; 0 where the record holds a reference instead
	Fields []Field
	Refs   []int // see below
	Copies int   // how many equal ones are wanted; 0 counts as 1
	Order  int   // of types with one name, those with a lower number come first
}

// Field is a member (Lo is bitfield size<<24 | bit offset with Flag, else the
// bit offset), an enumerator (Lo and Hi are its value), a parameter (no
// value), the encoding word of an INT, the number of elements of an ARRAY, or
// the linkage of a FUNC or VAR.
type Field struct {
	Name   string
	Lo, Hi uint32
}

// Void in Refs stands for void, all else is a position in the list of types.
// The references are in the order in which the record has them (btfenc.Shape).
const Void = -1

// content appends all of o that does not refer to other types. Anonymous types
// sort before named ones, those by name, because newer libbpf looks names up by
// bisection.
func (o *Type) content(b []byte) []byte {
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

// Write encodes types in the byte order of the kernel.
func Write(types []*Type, order binary.ByteOrder) []byte {
	b := btfenc.NewBuilder(order)
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
		if o.Kind == btfenc.KindFunc { // has its linkage there
			words, vlen = nil, int(o.Fields[0].Lo)
		}
		third := o.Size
		if shape.Third == btfenc.Ref {
			third = ref()
		}
		b.Type(o.Name, o.Kind, o.Flag, vlen, third)
		for _, f := range o.Fields {
			values := [2]uint32{f.Lo, f.Hi}
			for _, w := range words {
				switch w {
				case btfenc.Name:
					b.Word(b.String(f.Name))
				case btfenc.Ref:
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
