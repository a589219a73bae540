// SPDX-License-Identifier: Apache-2.0

package core

import (
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// entry returns s in the form of a log.
func (s *spec) entry() relo.Spec {
	e := relo.Spec{TypeID: uint32(s.root), Type: typeName(s.btf.Type(s.root)), Raw: s.rawString(), Path: s.path()}
	if s.kind.IsField() && s.err == nil {
		bytes, bits := s.bitOff/8, s.bitOff
		if e.Offset = &bytes; bits%8 != 0 {
			e.BitOffset = &bits
		}
	}
	if t, ok := s.btf.SkipMods(s.root); ok && s.kind.IsEnumval() && !t.KindFlag() {
		if e.Unsigned = 32; t.Kind() == btf.KindEnum64 {
			e.Unsigned = 64
		}
	}
	return e
}

// candidateEntry is a candidate in the form of a log.
type candidateEntry struct {
	relo.Candidate
	err error // libbpf's load ends with it
}

type explainKey struct {
	question int
	kind     relo.Kind
	place    int32
}

// explainer matches candidates again for the details that a table does not keep. It
// remembers them, and is not safe for concurrent use.
type explainer struct {
	tb    *Table
	m     matcher
	known map[explainKey]*candidateEntry // nil before the first
}

// candidate explains the candidate of a question at a place, for a spec that asks the question.
func (x *explainer) candidate(s *spec, question int, place int32) *candidateEntry {
	kind := s.kind
	key := explainKey{question, kind, place}
	if c, ok := x.known[key]; ok {
		return c
	}
	tb := x.tb
	cand := tb.candidates(question)[place]
	m := &x.m
	m.targ, m.floats = &cand.view.BTF, false
	ok, err := m.specMatch(s, cand.id)
	c := &candidateEntry{Candidate: relo.Candidate{Match: ok && err == nil}}
	if c.Match {
		var v value
		v, err = m.out.calc(kind)
		c.Spec, c.Value = m.out.entry(), &v.val
	} else {
		c.Spec = relo.Spec{TypeID: uint32(cand.id), Type: typeName(cand.view.Type(cand.id))}
		c.Reason = reasonOf(m.miss.reason())
	}
	module := cand.view.module // a view is used again for another kernel
	c.Module = &module
	c.err = err
	if x.known == nil {
		x.known = make(map[explainKey]*candidateEntry)
	}
	x.known[key] = c
	return c
}
