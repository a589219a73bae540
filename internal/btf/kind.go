// SPDX-License-Identifier: Apache-2.0

package btf

import "fmt"

// A TypeID numbers the types of a blob from 1. The zero value is void.
type TypeID uint32

// A Kind is the BTF_KIND_* of a type. The zero value is void.
type Kind uint8

// The kinds of include/uapi/linux/btf.h; shapes says what they consist of.
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

// IsMod reports whether k is what libbpf calls a modifier: const, volatile,
// restrict or a type tag.
func (k Kind) IsMod() bool {
	return k == KindConst || k == KindVolatile || k == KindRestrict || k == KindTypeTag
}

// HasLinkage reports whether k is a function or a variable, which are static, global or extern.
func (k Kind) HasLinkage() bool { return k == KindFunc || k == KindVar }

// Compat reports whether libbpf takes a and b for the same kind: they are
// equal, or both are enums of any width.
func (k Kind) Compat(o Kind) bool {
	return k == o || k.IsAnyEnum() && o.IsAnyEnum()
}

// Bits of the encoding of an INT.
const (
	IntSigned = 1 << 0
	IntChar   = 1 << 1
	IntBool   = 1 << 2
)
