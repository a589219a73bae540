// SPDX-License-Identifier: Apache-2.0

package engine

import "strconv"

// Kind is the kind of a CO-RE relocation, enum bpf_core_relo_kind. The zero
// value is KindByteOffset.
type Kind uint32

// The 13 kinds of relocations.
const (
	KindByteOffset    Kind = iota // offset of a field, bytes
	KindByteSize                  // size of a field, bytes
	KindFieldExists               // 1 if the target has the field
	KindSigned                    // 1 if the field is signed
	KindLShiftU64                 // left shift that moves a bitfield to the top of 64 bits
	KindRShiftU64                 // right shift that follows it
	KindLocalTypeID               // type ID in the object
	KindTargetTypeID              // type ID in the target
	KindTypeExists                // 1 if the target has the type
	KindTypeSize                  // size of the type, bytes
	KindEnumvalExists             // 1 if the target has the enumerator
	KindEnumvalValue              // value of the enumerator
	KindTypeMatches               // 1 if the target's type matches the local one

	numKinds
)

var kindNames = [numKinds]string{
	"byte_off", "byte_sz", "field_exists", "signed", "lshift_u64",
	"rshift_u64", "local_type_id", "target_type_id", "type_exists",
	"type_size", "enumval_exists", "enumval_value", "type_matches",
}

// String returns libbpf's name of the kind.
func (k Kind) String() string {
	if k < numKinds {
		return kindNames[k]
	}
	return "unknown(" + strconv.FormatUint(uint64(k), 10) + ")"
}

// IsField reports whether k asks about a field.
func (k Kind) IsField() bool { return k <= KindRShiftU64 }

// IsType reports whether k asks about a type as a whole.
func (k Kind) IsType() bool {
	return k >= KindLocalTypeID && k <= KindTypeSize || k == KindTypeMatches
}

// IsEnumval reports whether k asks about an enumerator.
func (k Kind) IsEnumval() bool { return k == KindEnumvalExists || k == KindEnumvalValue }

// IsExistence reports whether k asks whether something exists, so that finding
// nothing is an answer and not a failure.
func (k Kind) IsExistence() bool {
	return k == KindFieldExists || k == KindTypeExists || k == KindTypeMatches || k == KindEnumvalExists
}

// sort tells apart kinds whose targets are searched in different ways.
func (k Kind) sort() byte {
	switch {
	case k == KindTypeMatches:
		return 'm'
	case k.IsType():
		return 't'
	case k.IsEnumval():
		return 'e'
	}
	return 'f'
}
