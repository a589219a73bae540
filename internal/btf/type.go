// SPDX-License-Identifier: Apache-2.0

package btf

// Type is one record of a view. It is a small value that refers to the blob. The zero
// value, and what [BTF.Type] returns for ID 0, is void.
type Type struct {
	btf     *BTF
	off     uint32 // offset of the record in the type section, words
	info    uint32
	size    uint32 // size or type, by kind
	ID      TypeID
	NameOff uint32 // 0 when anonymous
}

// Offset returns where the record begins, in bytes from the beginning of the type section.
func (t Type) Offset() int { return 4 * int(t.off) }

// BTF returns the view to look up the type's references in: the base for a type that
// split BTF has from there.
func (t Type) BTF() *BTF { return t.btf }

// Kind returns the kind.
func (t Type) Kind() Kind { return Kind(t.info >> 24 & 0x7f) }

// Vlen returns the number of members, enumerators, parameters or variables.
func (t Type) Vlen() uint32 { return t.info & 0xffffff }

// KindFlag returns the kind_flag: members hold bitfield sizes (struct, union),
// enumerators are signed (enum), or the declaration is a union (fwd).
func (t Type) KindFlag() bool { return t.info>>31 != 0 }

// Size returns the size in bytes of a type whose [Shape] has one.
func (t Type) Size() uint32 { return t.size }

// Ref returns the type that struct btf_type refers to, if the [Shape] has one: the
// type that is pointed to, modified, declared or tagged, the prototype of a func, or
// the return type of a func_proto.
func (t Type) Ref() TypeID { return TypeID(t.size) }

// Name returns the name as a sub-slice of the blob, empty when anonymous.
func (t Type) Name() []byte {
	if t.NameOff == 0 {
		return nil
	}
	return t.btf.Name(t.NameOff)
}

// extra returns word i behind struct btf_type.
func (t Type) extra(i uint32) uint32 { return t.btf.types[t.off+hdrWords+i] }

// IntData returns the word that follows an INT: encoding<<24 | offset<<16 | bits.
func (t Type) IntData() uint32 { return t.extra(0) }

// IntEncoding returns the encoding bits of an INT.
func (t Type) IntEncoding() uint32 { return t.IntData() >> 24 & 0xf }

// IntOffset returns the bit offset of an INT, which only old BTF has.
func (t Type) IntOffset() uint32 { return t.IntData() >> 16 & 0xff }

// Linkage returns the linkage of a FUNC or VAR: 0 for static, 1 for global, 2 for
// extern.
func (t Type) Linkage() uint32 {
	if t.Kind() == KindFunc {
		return t.Vlen()
	}
	return t.extra(0)
}

// Array is the element type, index type and number of elements of an ARRAY.
type Array struct {
	Elem, Index TypeID
	Nelems      uint32
}

// Array returns what an ARRAY consists of.
func (t Type) Array() Array {
	return Array{TypeID(t.extra(0)), TypeID(t.extra(1)), t.extra(2)}
}

// Member is one member of a struct or union.
type Member struct {
	NameOff   uint32
	Type      TypeID
	BitOffset uint32 // bits from the start of the struct or union
	BitSize   uint32 // bits of a bitfield, otherwise 0
}

// Member returns member i, which must be less than Vlen.
func (t Type) Member(i uint32) Member {
	off := t.off + hdrWords + 3*i
	w := t.btf.types[off : off+3]
	m := Member{w[0], TypeID(w[1]), w[2], 0}
	if t.KindFlag() {
		m.BitSize = m.BitOffset >> 24
		m.BitOffset &= 0xffffff
	}
	return m
}

// Enumerator is one value of an ENUM or ENUM64.
type Enumerator struct {
	NameOff uint32
	Value   uint64 // sign-extended from 32 bits for ENUM, as in libbpf
}

// Enumerator returns enumerator i, which must be less than Vlen.
func (t Type) Enumerator(i uint32) Enumerator {
	if t.Kind() == KindEnum64 {
		return Enumerator{t.extra(3 * i), uint64(t.extra(3*i+2))<<32 | uint64(t.extra(3*i+1))}
	}
	return Enumerator{t.extra(2 * i), uint64(int64(int32(t.extra(2*i + 1))))}
}

// Param is one parameter of a FUNC_PROTO. A last one with type void and no name stands
// for "...".
type Param struct {
	NameOff uint32
	Type    TypeID
}

// Param returns parameter i, which must be less than Vlen.
func (t Type) Param(i uint32) Param {
	return Param{t.extra(2 * i), TypeID(t.extra(2*i + 1))}
}

// VarSecinfo is one variable of a DATASEC.
type VarSecinfo struct {
	Type         TypeID // VAR, or FUNC in .ksyms
	Offset, Size uint32 // bytes
}

// VarSecinfo returns variable i of a DATASEC, which must be less than Vlen.
func (t Type) VarSecinfo(i uint32) VarSecinfo {
	return VarSecinfo{TypeID(t.extra(3 * i)), t.extra(3*i + 1), t.extra(3*i + 2)}
}
