// SPDX-License-Identifier: Apache-2.0

package core

import (
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relo"
)

// matcher matches specs with types of a kernel (bpf_core_spec_match of libbpf).
// It is scratch memory: not for concurrent use, and its results are valid until
// the next call.
type matcher struct {
	comparer

	out spec            // target side of the match
	aya *btf.Enumerator // the enumerator that aya finds
}

// specMatch matches l with the type id of m.targ and fills m.out and m.needs
// (bpf_core_spec_match of libbpf). If it returns false without an error, m.miss has
// the reason. An error ends the load in libbpf.
func (m *matcher) specMatch(l *spec, id btf.TypeID) (bool, error) {
	m.local, m.budget = l.btf, limits.MatchSteps
	m.out = spec{btf: m.targ, root: id, kind: l.kind, acc: m.out.acc[:0], raw: m.out.raw[:0]}
	m.needs = m.needs[:0]
	m.miss, m.float, m.aya = miss{}, false, nil
	switch {
	case l.kind == relo.TypeMatches:
		return m.compareRoots(l.root, id, relMatches)
	case l.kind.IsType():
		return m.compareRoots(l.root, id, relExists)
	case l.kind.IsEnumval():
		return m.matchEnumval(l, id)
	}
	return m.matchField(l, id)
}

// matchEnumval searches an enum for the enumerator by which each loader takes it.
func (m *matcher) matchEnumval(l *spec, id btf.TypeID) (bool, error) {
	t, ok := m.targ.SkipMods(id)
	if !ok {
		return false, errNesting
	}
	if !t.Kind().IsAnyEnum() {
		m.miss = miss{code: relo.CandidateNotEnum, target: t}
		return false, nil
	}
	want, matched := l.acc[0].name, false
	for i := uint32(0); i < t.Vlen() && !(matched && m.aya != nil); i++ {
		if !m.spend(1) {
			return false, errNesting
		}
		e := t.Enumerator(i)
		name := m.targ.Name(e.NameOff)
		by := btf.SameEssential(want, name)
		libbpf, aya := !matched && by&btf.Libbpf != 0, m.aya == nil && by&btf.Aya != 0
		if !libbpf && !aya {
			continue
		}
		m.needs.add(t.ID, NeedEnumerator, i)
		if libbpf {
			matched = true
			m.out.acc = append(m.out.acc, accessor{t.ID, i, string(name)})
			m.out.raw = append(m.out.raw, level{t.ID, i, true})
		}
		if aya {
			m.aya = &e
		}
	}
	if matched {
		return true, nil
	}
	m.miss = miss{code: relo.CandidateEnumerator, name: btf.Essential(want)}
	return false, nil
}

// matchField follows the turning points of l through the target's types.
func (m *matcher) matchField(l *spec, id btf.TypeID) (bool, error) {
	t, ok := m.targ.SkipMods(id)
	if !ok {
		return false, errNesting
	}
	for i := range l.acc {
		var err error
		if a := &l.acc[i]; a.name != "" {
			t, ok, err = m.enterMember(a, t)
		} else {
			t, ok, err = m.enterElement(a, t, i == 0)
		}
		if !ok {
			return false, err
		}
	}
	return true, nil
}

// enterMember follows a turning point at a member, from the target type t to the member's type.
func (m *matcher) enterMember(a *accessor, t btf.Type) (btf.Type, bool, error) {
	local, ok := m.local.SkipMods(a.typeID)
	if !ok {
		return t, false, errNesting
	}
	m.miss = miss{code: relo.CandidateMember, name: a.name}
	next, ok, err := m.matchMember(a.name, local.Member(a.idx).Type, t)
	switch {
	case !ok:
		return t, false, err
	case m.budget < 0:
		return t, false, errNesting
	}
	if t, ok = m.targ.SkipMods(next); !ok {
		return t, false, errNesting
	}
	return t, true, nil
}

// enterElement follows a turning point at an element, from an array to the type of its elements. The first one is an element of the root, as
// if that were one of several.
func (m *matcher) enterElement(a *accessor, t btf.Type, root bool) (btf.Type, bool, error) {
	if !root {
		if t.Kind() != btf.KindArray {
			m.miss = miss{code: relo.CandidateNotArray, target: t}
			return t, false, nil
		}
		arr, ok := t.Array(), false
		if a.idx >= arr.Nelems && !m.out.flexible(arr) {
			m.miss = miss{code: relo.CandidateShortArray, localNumber: a.idx, targetNumber: arr.Nelems}
			return t, false, nil
		}
		if t, ok = m.targ.SkipMods(arr.Elem); !ok {
			return t, false, errNesting
		}
	}
	if len(m.out.raw) == maxSpec {
		return t, false, errTooDeep
	}
	if err := m.out.element(t.ID, a.idx); err != nil {
		return t, false, err
	}
	return t, true, nil
}

// matchMember searches t and its anonymous structs and unions, depth first, for a
// member by name and returns its type (bpf_core_match_member of libbpf). m.out
// keeps the levels that lead to the member.
func (m *matcher) matchMember(name string, local btf.TypeID, t btf.Type) (next btf.TypeID, ok bool, err error) {
	if !t.Kind().IsComposite() {
		return 0, false, nil
	}
	for i := range t.Vlen() {
		if len(m.out.raw) == maxSpec {
			return 0, false, errTooDeep
		}
		if !m.spend(1) {
			return 0, false, errNesting
		}
		mem := t.Member(i)
		if m.targ.NameIs(mem.NameOff, "") {
			sub, ok := m.targ.SkipMods(mem.Type)
			if !ok {
				return 0, false, errNesting
			}
			if !sub.Kind().IsComposite() {
				continue
			}
			m.push(t.ID, i, mem)
			if next, ok, err = m.matchMember(name, local, sub); ok || err != nil {
				return next, ok, err
			}
			m.pop(mem)
		} else if m.targ.NameIs(mem.NameOff, name) {
			if ok, err := m.fieldsCompatible(local, mem.Type, name); !ok {
				m.out.raw = append(m.out.raw, level{t.ID, i, true}) // libbpf does not take its step back
				m.out.bitOff += mem.BitOffset
				return 0, false, err
			}
			m.push(t.ID, i, mem)
			m.out.acc = append(m.out.acc, accessor{t.ID, i, name})
			return mem.Type, true, nil
		}
	}
	return 0, false, nil
}

func (m *matcher) push(id btf.TypeID, i uint32, mem btf.Member) {
	m.out.raw = append(m.out.raw, level{id, i, true})
	m.out.bitOff += mem.BitOffset
	m.needs.add(id, NeedMember, i)
}

func (m *matcher) pop(mem btf.Member) {
	m.out.raw = m.out.raw[:len(m.out.raw)-1]
	m.out.bitOff -= mem.BitOffset
	m.needs = m.needs[:len(m.needs)-1]
}
