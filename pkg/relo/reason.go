// SPDX-License-Identifier: Apache-2.0

package relo

import "fmt"

// Code names a kind of finding, such as "no-candidate". Codes are stable: reports of every format use the same ones, and
// docs/findings.md explains each.
type Code string

// Why a relocation is not resolved.
const (
	NoCandidate         Code = "no-candidate"            // the target has no type of the name and kind
	FieldMissing        Code = "field-missing"           // candidates exist, but none has the field; Cause: one has another
	EnumeratorMissing   Code = "enumerator-missing"      // candidates exist, but none has the enumerator
	TypeMismatch        Code = "type-mismatch"           // candidates exist, but none matches the local type
	AmbiguousOffset     Code = "ambiguous-offset"        // LocalNumber, TargetNumber: offsets in bits
	AmbiguousValue      Code = "ambiguous-value"         // LocalNumber, TargetNumber: values
	InvalidRelocation   Code = "invalid-relocation"      // Cause; TargetNumber: the type ID of the candidate that is wrong, 0 for the record
	LoadNotResizable    Code = "load-not-resizable"      // Cause
	UnpatchableInsn     Code = "unpatchable-instruction" // Cause
	CandidateKind       Code = "candidate-kind"          // Name (may be empty), Local, Target: kinds
	CandidateMember     Code = "candidate-member"        // Name: the member that the candidate lacks
	CandidateMemberName Code = "candidate-member-name"   // Name: the member; Local, Target: names of its type
	CandidateBitOffset  Code = "candidate-bit-offset"    // Name (may be empty)
	CandidateNotArray   Code = "candidate-not-array"     // Target: the kind
	CandidateShortArray Code = "candidate-short-array"   // LocalNumber: the element; TargetNumber: the number of elements
	CandidateEnumerator Code = "candidate-enumerator"    // Name: the enumerator that the candidate lacks
	CandidateNotEnum    Code = "candidate-not-enum"      // Target: the kind
	CandidateTypeName   Code = "candidate-type-name"     // Local, Target: types
	CandidateInteger    Code = "candidate-integer"       // Local: the type
	CandidateElements   Code = "candidate-elements"      // LocalNumber, TargetNumber: numbers of elements
	CandidateParameters Code = "candidate-parameters"    // LocalNumber, TargetNumber: numbers of parameters
	CandidateMembers    Code = "candidate-members"       // Local: the type; LocalNumber, TargetNumber: numbers of members
	CandidateEnumSize   Code = "candidate-enum-size"     // Local: the type
)

// Cause says what a loader does not accept about a record, a candidate or an instruction. Causes are as stable as codes.
type Cause string

// The causes, with their arguments.
const (
	// Of an invalid record or candidate.
	CauseAccess       Cause = "access-string"     // the access string does not fit the type
	CauseBound        Cause = "array-bound"       // the access string Name goes beyond an array of LocalNumber elements
	CauseAccessKind   Cause = "access-into"       // LocalNumber: the level where the access string goes into a type of the kind Name
	CauseLevels       Cause = "too-deep"          // LocalNumber: how many levels an access string may have
	CauseEndless      Cause = "endless-types"     // types nest too deeply, or refer to each other without end
	CauseAnonymous    Cause = "anonymous-type"    // the type has no name
	CauseRelocation   Cause = "relocation-kind"   // the kind of the relocation is unknown
	CauseNoType       Cause = "type-missing"      // LocalNumber: the type ID, which does not exist
	CauseTypeKind     Cause = "type-kind"         // Name: the kind of the type
	CauseNoSize       Cause = "no-size"           // the type has no size
	CauseTooBig       Cause = "size-overflow"     // the size exceeds 32 bits
	CauseWideBitfield Cause = "bitfield-too-wide" // the bitfield needs a load of more than 64 bits
	CauseElement      Cause = "array-element"     // the kind of relocation does not apply to array elements

	// Of a missing field.
	CauseOtherKind  Cause = "field-kind"       // Local, Target: the kinds of the field
	CauseOtherName  Cause = "field-type-name"  // Local, Target: the names of its type
	CauseBitOffset  Cause = "field-bit-offset" // it is an integer with a bit offset
	CauseNotArray   Cause = "field-no-array"   // Target: the kind of what should be an array
	CauseShortArray Cause = "field-array"      // LocalNumber: the element, TargetNumber: the number of elements

	// Of an instruction.
	CauseFieldSize   Cause = "field-size"          // LocalNumber, TargetNumber: bytes of the field
	CauseBitfield    Cause = "bitfield"            // LocalNumber, TargetNumber: bytes of the field; 0 is a bitfield
	CauseOperand     Cause = "operand"             // LocalNumber: the operand, TargetNumber: what it should be; both signed
	CauseOffset      Cause = "offset-too-large"    // TargetNumber: the offset
	CauseInsnSize    Cause = "instruction-size"    // LocalNumber: bytes that it loads, TargetNumber: bytes of the field
	CauseLoadSize    Cause = "no-load-of-size"     // TargetNumber: bytes
	CauseNoImmediate Cause = "no-immediate"        // the operand is a register
	CauseNoImm64     Cause = "no-64-bit-immediate" // it is no load of a constant
	CauseInsnClass   Cause = "instruction-class"   // LocalNumber: the class
	CauseValue       Cause = "value-too-large"     // TargetNumber: the value
	CauseSwap        Cause = "byte-swap"           // the instruction swaps bytes

	// Only cilium/ebpf has these.
	CauseAmbiguous   Cause = "ambiguous"             // candidates disagree
	CauseUnsupported Cause = "unsupported"           // it does not support the type
	CauseInBitfield  Cause = "into-bitfield"         // the access string goes on after a bitfield
	CauseFlexible    Cause = "flexible-array"        // an array without elements is not the last member
	CauseIndex       Cause = "index-too-large"       // LocalNumber: the index, TargetNumber: the number of elements
	CauseSign        Cause = "no-sign"               // the type has no sign
	CauseMember      Cause = "anonymous-member-kind" // an anonymous member is no struct or union
	CauseAlignment   Cause = "no-alignment"          // a bitfield's type has no alignment
)

// Reason says why a relocation is not resolved, or why a candidate does not match: a code and its arguments. It is
// comparable. The zero value is no reason.
type Reason struct {
	Code         Code   `json:"code"`
	Cause        Cause  `json:"cause,omitempty"`
	Name         string `json:"name,omitempty"`   // name of a member, an enumerator or a kind
	Local        string `json:"local,omitempty"`  // a type or kind in the object
	Target       string `json:"target,omitempty"` // a type or kind in the kernel
	LocalNumber  uint64 `json:"local_number,omitempty"`
	TargetNumber uint64 `json:"target_number,omitempty"`
}

// String returns the code with its arguments, for debugging: "candidate-member{name:pid}".
func (r Reason) String() string {
	if r.Code == "" {
		return ""
	}
	args := ""
	add := func(name string, v any, set bool) {
		if set {
			args += fmt.Sprintf(" %s:%v", name, v)
		}
	}
	add("cause", r.Cause, r.Cause != "")
	add("name", r.Name, r.Name != "")
	add("local", r.Local, r.Local != "")
	add("target", r.Target, r.Target != "")
	add("local", r.LocalNumber, r.LocalNumber != 0)
	add("target", r.TargetNumber, r.TargetNumber != 0)
	if args == "" {
		return string(r.Code)
	}
	return string(r.Code) + "{" + args[1:] + "}"
}
