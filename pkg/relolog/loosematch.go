package relolog

import "github.com/btfgen/btfgen/internal/rawbtf"

// What cilium/ebpf (btf/core.go, v0.22) takes for a match of whole types. It
// differs from libbpf in that it looks through the typedefs of the root,
// compares the index types of arrays, and for type_matches goes on behind
// pointers into structs.

type typePair struct{ local, targ rawbtf.TypeID }

// maxPairs bounds how many pairs of types one comparison visits, and so how
// deep it recurses.
const maxPairs = 1 << 16

// typesCompatAny reports whether libbpf or cilium/ebpf would match, and leaves
// in m.needs what either needs.
func (m *matcher) typesCompatAny(local, targ rawbtf.TypeID) (bool, error) {
	return m.either(func() (bool, error) { return m.typesCompat(local, targ, maxLevel) },
		func() (bool, error) { return m.compatLoose(local, targ, make(map[typePair]bool)) })
}

// typesMatchAny is typesCompatAny for type_matches.
func (m *matcher) typesMatchAny(local, targ rawbtf.TypeID) (bool, error) {
	return m.either(func() (bool, error) { return m.typesMatch(local, targ, false, maxLevel) },
		func() (bool, error) { return m.matchLoose(local, targ, make(map[typePair]bool)) })
}

func (m *matcher) either(libbpf, cilium func() (bool, error)) (bool, error) {
	base := len(m.needs)
	ok1, err1 := libbpf()
	if !ok1 {
		m.needs = m.needs[:base]
	}
	m.budget = matchBudget
	base = len(m.needs)
	ok2, err2 := cilium()
	if !ok2 {
		m.needs = m.needs[:base]
	}
	if ok1 || ok2 {
		return true, nil
	}
	if err1 != nil {
		return false, err1
	}
	return false, err2
}

func (m *matcher) compatLoose(local, targ rawbtf.TypeID, seen map[typePair]bool) (bool, error) {
	l, t, err := m.pair(local, targ)
	if err != nil {
		return false, err
	}
	if !l.Kind().Compat(t.Kind()) {
		return m.differ(l, t)
	}
	m.need(t.ID, NeedType, 0)
	p := typePair{l.ID, t.ID}
	if seen[p] {
		return true, nil
	}
	if seen[p] = true; len(seen) > maxPairs {
		return false, errNesting
	}
	switch l.Kind() {
	case rawbtf.KindPtr:
		m.need(t.ID, NeedPointee, 0)
		return m.compatLoose(l.Ref(), t.Ref(), seen)
	case rawbtf.KindArray:
		m.need(t.ID, NeedIndex, 0)
		if ok, err := m.compatLoose(l.Array().Index, t.Array().Index, seen); !ok {
			return false, err
		}
		return m.compatLoose(l.Array().Elem, t.Array().Elem, seen)
	case rawbtf.KindFuncProto:
		return m.protosLoose(l, t, seen, m.compatLoose)
	}
	return true, nil
}

func (m *matcher) protosLoose(l, t rawbtf.Type, seen map[typePair]bool, cmp func(l, t rawbtf.TypeID, seen map[typePair]bool) (bool, error)) (bool, error) {
	if l.Vlen() != t.Vlen() {
		return false, nil
	}
	for i := range l.Vlen() {
		if ok, err := cmp(l.Param(i).Type, t.Param(i).Type, seen); !ok {
			return false, err
		}
	}
	return cmp(l.Ref(), t.Ref(), seen)
}

// looseNames is true for equal essential names, or if one is empty.
func (m *matcher) looseNames(local, targ uint32) bool {
	return m.local.NameIs(local, "") || m.targ.NameIs(targ, "") || m.namesMatch(local, targ)
}

func (m *matcher) matchLoose(local, targ rawbtf.TypeID, seen map[typePair]bool) (bool, error) {
	l, t, err := m.pair(local, targ)
	if err != nil {
		return false, err
	}
	if !m.looseNames(l.NameOff, t.NameOff) || !l.Kind().Compat(t.Kind()) {
		return m.differ(l, t)
	}
	m.need(t.ID, NeedType, 0)
	p := typePair{l.ID, t.ID}
	if seen[p] {
		return true, nil
	}
	if seen[p] = true; len(seen) > maxPairs {
		return false, errNesting
	}
	switch l.Kind() {
	case rawbtf.KindFwd:
		return l.KindFlag() == t.KindFlag(), nil
	case rawbtf.KindEnum, rawbtf.KindEnum64:
		return m.enumsMatch(l, t)
	case rawbtf.KindStruct, rawbtf.KindUnion:
		return m.membersLoose(l, t, seen)
	case rawbtf.KindInt:
		m.need(t.ID, NeedName, 0)
		return l.Size() == t.Size() && (l.IntEncoding() == rawbtf.IntSigned) == (t.IntEncoding() == rawbtf.IntSigned), nil
	case rawbtf.KindPtr:
		m.need(t.ID, NeedPointee, 0)
		lp, tp, err := m.pair(l.Ref(), t.Ref())
		if err != nil {
			return false, err
		}
		if fwdMatches(lp, tp) || fwdMatches(tp, lp) {
			m.need(tp.ID, NeedType, 0)
			return true, nil
		}
		return m.matchLoose(lp.ID, tp.ID, seen)
	case rawbtf.KindArray:
		if l.Array().Nelems != t.Array().Nelems {
			return false, nil
		}
		return m.matchLoose(l.Array().Elem, t.Array().Elem, seen)
	case rawbtf.KindFuncProto:
		return m.protosLoose(l, t, seen, m.matchLoose)
	}
	return true, nil
}

// fwdMatches reports whether f is a forward declaration of t's kind.
func fwdMatches(f, t rawbtf.Type) bool {
	return f.Kind() == rawbtf.KindFwd &&
		(t.Kind() == rawbtf.KindStruct && !f.KindFlag() || t.Kind() == rawbtf.KindUnion && f.KindFlag())
}

// membersLoose takes, of target members with the same name, the last, as
// cilium/ebpf's map of members does. All of them are needed so that the last
// stays the last.
func (m *matcher) membersLoose(l, t rawbtf.Type, seen map[typePair]bool) (bool, error) {
	if l.Vlen() > t.Vlen() {
		return false, nil
	}
	last := make(map[string]uint32, t.Vlen())
	for j := range t.Vlen() {
		last[string(m.targ.Name(t.Member(j).NameOff))] = j
	}
	for i := range l.Vlen() {
		lm := l.Member(i)
		j, ok := last[string(m.local.Name(lm.NameOff))]
		if !ok {
			return false, nil
		}
		if m.budget--; m.budget < 0 {
			return false, errNesting
		}
		m.need(t.ID, NeedMember, j)
		if ok, err := m.matchLoose(lm.Type, t.Member(j).Type, seen); !ok {
			return false, err
		}
	}
	m.needCount(t, l.Vlen(), NeedMember)
	return true, nil
}
