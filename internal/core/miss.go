// SPDX-License-Identifier: Apache-2.0

package core

import (
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// miss is why a candidate does not match. Its types have no names yet, because most
// are never read.
type miss struct {
	code                      relo.Code // "" for a match
	name                      string    // name of a member or an enumerator
	local, target             btf.Type  // types compared last
	localNumber, targetNumber uint32    // numbers on either side, by code
}

// reason says why the candidate does not match; it is zero for one that does.
func (m *miss) reason() relo.Reason {
	if m.code == "" {
		return relo.Reason{}
	}
	r := relo.Reason{Code: m.code, Name: m.name, LocalNumber: uint64(m.localNumber), TargetNumber: uint64(m.targetNumber)}
	switch m.code {
	case relo.CandidateKind:
		r.Local, r.Target = m.local.Kind().String(), m.target.Kind().String()
	case relo.CandidateMemberName:
		r.Local, r.Target = m.local.Kind().String()+" "+string(m.local.Name()), string(m.target.Name())
	case relo.CandidateNotArray, relo.CandidateNotEnum:
		r.Target = m.target.Kind().String()
	case relo.CandidateTypeName:
		r.Local, r.Target = typeName(m.local), typeName(m.target)
	case relo.CandidateInteger, relo.CandidateMembers, relo.CandidateEnumSize:
		r.Local = typeName(m.local)
	}
	return r
}
