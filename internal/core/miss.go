// SPDX-License-Identifier: Apache-2.0

package core

import (
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// miss is why a candidate does not match. It is kept unformatted, because most
// are never read.
type miss struct {
	code          missCode
	name          string   // of a member or an enumerator
	local, target btf.Type // what was compared last
	l, t          uint32   // numbers on either side, by code
}

type missCode uint8

const (
	missNone missCode = iota
	missKind
	missMember
	missEnumName
	missBitOffset
	missNotArray
	missShortArray
	missEnumerator
	missNotEnum
	missTypeName
	missInt
	missNelems
	missParams
	missVlen
	missEnumSize
)

// reason says why the candidate does not match; it is zero for one that does.
func (m *miss) reason() relo.Reason {
	r := relo.Reason{Name: m.name, LocalNumber: uint64(m.l), TargetNumber: uint64(m.t)}
	switch m.code {
	case missNone:
		return relo.Reason{}
	case missKind:
		r.Code, r.Local, r.Target = relo.CandidateKind, m.local.Kind().String(), m.target.Kind().String()
	case missMember:
		r.Code = relo.CandidateMember
	case missEnumName:
		r.Code, r.Local, r.Target = relo.CandidateMemberName, m.local.Kind().String()+" "+string(m.local.Name()), string(m.target.Name())
	case missBitOffset:
		r.Code = relo.CandidateBitOffset
	case missNotArray:
		r.Code, r.Target = relo.CandidateNotArray, m.target.Kind().String()
	case missShortArray:
		r.Code = relo.CandidateShortArray
	case missEnumerator:
		r.Code = relo.CandidateEnumerator
	case missNotEnum:
		r.Code, r.Target = relo.CandidateNotEnum, m.target.Kind().String()
	case missTypeName:
		r.Code, r.Local, r.Target = relo.CandidateTypeName, typeName(m.local), typeName(m.target)
	case missInt:
		r.Code, r.Local = relo.CandidateInteger, typeName(m.local)
	case missNelems:
		r.Code = relo.CandidateElements
	case missParams:
		r.Code = relo.CandidateParameters
	case missVlen:
		r.Code, r.Local = relo.CandidateMembers, typeName(m.local)
	case missEnumSize:
		r.Code, r.Local = relo.CandidateEnumSize, typeName(m.local)
	}
	return r
}

// typeName returns how C names a type: "struct task_struct", "u64".
func typeName(t btf.Type) string {
	name := string(t.Name())
	if name == "" {
		name = "<anon>"
	}
	switch k := t.Kind(); k {
	case btf.KindStruct, btf.KindUnion, btf.KindFunc, btf.KindVar:
		return k.String() + " " + name
	case btf.KindEnum, btf.KindEnum64:
		return "enum " + name
	case btf.KindFwd:
		if t.KindFlag() {
			return "union " + name
		}
		return "struct " + name
	case btf.KindInt, btf.KindFloat, btf.KindTypedef:
		return name
	case btf.KindVoid:
		return "void"
	default:
		return k.String()
	}
}
