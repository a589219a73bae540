// SPDX-License-Identifier: Apache-2.0

package relo

import (
	"fmt"
	"slices"
	"strconv"
)

// Kind is the kind of a CO-RE relocation, enum bpf_core_relo_kind. The zero
// value is ByteOffset. As text, in JSON too, it is libbpf's name of the kind.
type Kind uint32

// The 13 kinds of relocations.
const (
	ByteOffset    Kind = iota // offset of a field, bytes
	ByteSize                  // size of a field, bytes
	FieldExists               // 1 if the target has the field
	Signed                    // 1 if the field is signed
	LShiftU64                 // left shift that moves a bitfield to the top of 64 bits
	RShiftU64                 // right shift that follows it
	LocalTypeID               // type ID in the object
	TargetTypeID              // type ID in the target
	TypeExists                // 1 if the target has the type
	TypeSize                  // size of the type, bytes
	EnumvalExists             // 1 if the target has the enumerator
	EnumvalValue              // value of the enumerator
	TypeMatches               // 1 if the target's type matches the local one

	numKinds
)

var kindNames = [numKinds]string{
	"byte_off", "byte_sz", "field_exists", "signed", "lshift_u64",
	"rshift_u64", "local_type_id", "target_type_id", "type_exists",
	"type_size", "enumval_exists", "enumval_value", "type_matches",
}

// String returns libbpf's name of the kind, such as "byte_off". A kind that
// libbpf does not define is "unknown(99)".
func (k Kind) String() string {
	if k < numKinds {
		return kindNames[k]
	}
	return "unknown(" + strconv.FormatUint(uint64(k), 10) + ")"
}

// MarshalText returns [Kind.String].
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText parses what MarshalText returns, including "unknown(99)".
// Any other text is an error.
func (k *Kind) UnmarshalText(text []byte) error {
	for i := range numKinds {
		if i.String() == string(text) {
			*k = i
			return nil
		}
	}
	var n Kind
	if _, err := fmt.Sscanf(string(text), "unknown(%d)", (*uint32)(&n)); err == nil && n.String() == string(text) {
		*k = n
		return nil
	}
	return fmt.Errorf("unknown kind of relocation %q", text)
}

// IsField reports whether k is about a field.
func (k Kind) IsField() bool { return k <= RShiftU64 }

// IsType reports whether k is about a type as a whole.
func (k Kind) IsType() bool {
	return k >= LocalTypeID && k <= TypeSize || k == TypeMatches
}

// IsEnumval reports whether k is about an enumerator.
func (k Kind) IsEnumval() bool { return k == EnumvalExists || k == EnumvalValue }

// IsExistence reports whether k checks that something exists, so that a target
// without it is an answer and not a failure.
func (k Kind) IsExistence() bool {
	return k == FieldExists || k == TypeExists || k == TypeMatches || k == EnumvalExists
}

// Result is how a loader decides one relocation. The zero value is Resolved.
// As text, in JSON too, it is its name in lower case.
type Result uint8

// The results.
const (
	Resolved  Result = iota
	Absent           // an existence or size question answered no
	Poisoned         // the instruction is made invalid
	Ambiguous        // candidates disagree; the load fails
	Error            // the load fails
)

var resultNames = []string{"resolved", "absent", "poisoned", "ambiguous", "error"}

// String returns the name of the result.
func (r Result) String() string {
	if int(r) < len(resultNames) {
		return resultNames[r]
	}
	return fmt.Sprintf("unknown(%d)", uint8(r))
}

// MarshalText returns [Result.String].
func (r Result) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses the name of a result. Any other text is an error.
func (r *Result) UnmarshalText(text []byte) error {
	i := slices.Index(resultNames, string(text))
	if i < 0 {
		return fmt.Errorf("unknown result %q", text)
	}
	*r = Result(i)
	return nil
}

// OK reports whether the load goes on and the instruction stays valid.
func (r Result) OK() bool { return r <= Absent }
