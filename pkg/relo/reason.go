// SPDX-License-Identifier: Apache-2.0

package relo

import "fmt"

// Code names a kind of finding, such as "no-candidate". Codes are stable: reports of every format use the same ones, and
// docs/findings.md explains each.
type Code string

// Why a relocation is not resolved.
const (
	NoCandidate         Code = "no-candidate"            // the target has no type of the name and kind
	FieldMissing        Code = "field-missing"           // candidates exist, but none has the field
	EnumeratorMissing   Code = "enumerator-missing"      // candidates exist, but none has the enumerator
	TypeMismatch        Code = "type-mismatch"           // candidates exist, but none matches the local type
	AmbiguousOffset     Code = "ambiguous-offset"        // LocalNumber, TargetNumber: offsets in bits
	AmbiguousValue      Code = "ambiguous-value"         // LocalNumber, TargetNumber: values
	InvalidRelocation   Code = "invalid-relocation"      // Detail: what is wrong with the record, or with a candidate
	LoadNotResizable    Code = "load-not-resizable"      // Detail: the sizes of the field
	UnpatchableInsn     Code = "unpatchable-instruction" // Detail: what is wrong with the instruction
	FlavorDisputed      Code = "flavor-disputed"         // Name; Local, Target, Detail: what libbpf, cilium/ebpf and aya take it for
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

// Reason says why a relocation is not resolved, or why a candidate does not match: a code and its arguments. It is
// comparable. The zero value is no reason.
type Reason struct {
	Code         Code   `json:"code"`
	Name         string `json:"name,omitempty"`   // of a member or an enumerator
	Local        string `json:"local,omitempty"`  // a type or kind in the object
	Target       string `json:"target,omitempty"` // a type or kind in the kernel
	LocalNumber  uint64 `json:"local_number,omitempty"`
	TargetNumber uint64 `json:"target_number,omitempty"`
	Detail       string `json:"detail,omitempty"` // text of an error, or another name
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
	add("name", r.Name, r.Name != "")
	add("local", r.Local, r.Local != "")
	add("target", r.Target, r.Target != "")
	add("local", r.LocalNumber, r.LocalNumber != 0)
	add("target", r.TargetNumber, r.TargetNumber != 0)
	add("detail", r.Detail, r.Detail != "")
	if args == "" {
		return string(r.Code)
	}
	return string(r.Code) + "{" + args[1:] + "}"
}
