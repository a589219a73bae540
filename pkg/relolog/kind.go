// SPDX-License-Identifier: Apache-2.0

package relolog

import (
	"fmt"

	"github.com/btfgen/btfgen/internal/engine"
)

// Kind is the kind of a CO-RE relocation, enum bpf_core_relo_kind. The zero
// value is KindByteOffset. As text, in JSON too, it is libbpf's name of the
// kind.
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

// String returns libbpf's name of the kind: "byte_off".
func (k Kind) String() string { return engine.Kind(k).String() }

// MarshalText returns [Kind.String].
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote, "unknown(99)" of a damaged record
// included. Anything else is an error.
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
