// SPDX-License-Identifier: Apache-2.0

package core

import (
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
)

// How cilium/ebpf compares types as wholes (coreAreTypesCompatible and
// coreTypesMatch in btf/core.go).

// ciliumComparer compares types of an object with a kernel's as cilium/ebpf does. It is
// scratch memory: not for concurrent use.
type ciliumComparer struct {
	local, targ *btf.BTF
	seen        map[typePair]bool
	needs       needs // parts of the kernel's types that the last match relied on
	budget      int
	deep        bool // a match took more than limits.Pairs
}

type typePair struct{ local, targ btf.TypeID }

// pair reads both sides without modifiers and typedefs. It reports whether the
// pair is already compared, or is being compared.
func (m *ciliumComparer) pair(local, targ btf.TypeID) (l, t btf.Type, known bool, err error) {
	l, ok1 := m.local.SkipMods(local)
	t, ok2 := m.targ.SkipMods(targ)
	if m.budget--; !ok1 || !ok2 || m.budget < 0 {
		return l, t, false, errNesting
	}
	if !l.Kind().Compat(t.Kind()) {
		return l, t, false, errImpossible
	}
	if m.seen == nil {
		m.seen = make(map[typePair]bool)
	}
	p := typePair{l.ID, t.ID}
	known = m.seen[p]
	m.seen[p] = true
	if len(m.seen) > limits.Pairs {
		m.deep = true
		return l, t, false, errNesting
	}
	return l, t, known, nil
}

// typesCompatible compares two types as wholes (coreAreTypesCompatible), or with relMatches also by names and members (coreTypesMatch).
func (m *ciliumComparer) typesCompatible(local, targ btf.TypeID, rel relation) error {
	l, t, known, err := m.pair(local, targ)
	matches := rel == relMatches
	switch {
	case err != nil:
		return err
	case matches && !m.namesMatch(l.NameOff, t.NameOff):
		return errImpossible
	case known:
		return nil
	}
	equal := true
	switch k := l.Kind(); {
	case k == btf.KindVoid:
	case k == btf.KindFwd:
		equal = l.KindFlag() == t.KindFlag()
	case k.IsAnyEnum() && matches:
		return m.enums(l, t)
	case k.IsComposite() && matches:
		return m.members(l, t)
	case k.IsAnyEnum(), k.IsComposite():
	case k == btf.KindInt:
		equal = l.Size() == t.Size() && (l.IntEncoding() == btf.IntSigned) == (t.IntEncoding() == btf.IntSigned)
	case k == btf.KindPtr:
		m.needs.add(t.ID, NeedPointee, 0)
		lp, ok1 := m.local.SkipMods(l.Ref())
		tp, ok2 := m.targ.SkipMods(t.Ref())
		if matches && ok1 && ok2 && (forwards(lp, tp) || forwards(tp, lp)) {
			return nil
		}
		return m.typesCompatible(l.Ref(), t.Ref(), rel)
	case k == btf.KindArray:
		a, b := l.Array(), t.Array()
		switch {
		case !matches:
			m.needs.add(t.ID, NeedIndex, 0)
			if err := m.typesCompatible(a.Index, b.Index, rel); err != nil {
				return err
			}
		case a.Nelems != b.Nelems:
			return errImpossible
		}
		return m.typesCompatible(a.Elem, b.Elem, rel)
	case k == btf.KindFuncProto && matches:
		if err := m.params(l, t, rel); err != nil {
			return err
		}
		return m.typesCompatible(l.Ref(), t.Ref(), rel)
	case k == btf.KindFuncProto:
		if err := m.typesCompatible(l.Ref(), t.Ref(), rel); err != nil {
			return err
		}
		return m.params(l, t, rel)
	default:
		return errUnsupported
	}
	if matches && !equal {
		return errImpossible
	}
	return nil
}

// params compares the parameters of two prototypes.
func (m *ciliumComparer) params(l, t btf.Type, rel relation) error {
	if l.Vlen() != t.Vlen() {
		return errImpossible
	}
	for i := range l.Vlen() {
		if err := m.typesCompatible(l.Param(i).Type, t.Param(i).Type, rel); err != nil {
			return err
		}
	}
	return nil
}

// namesMatch compares the names of two types or enumerators.
func (m *ciliumComparer) namesMatch(local, targ uint32) bool {
	l, t := m.local.Name(local), m.targ.Name(targ)
	m.budget -= (len(l) + len(t)) / 64
	return sameEssential(l, t)
}

// members compares the members of one name (coreTypesMatch). Of several in the target
// the last counts.
func (m *ciliumComparer) members(l, t btf.Type) error {
	if l.Vlen() > t.Vlen() {
		return errImpossible
	}
	last := make(map[string]uint32, t.Vlen())
	for j := range t.Vlen() {
		name := m.targ.Name(t.Member(j).NameOff)
		if m.budget -= 1 + len(name)/64; m.budget < 0 {
			return errNesting
		}
		last[string(name)] = j
	}
	var chosen []uint32
	for i := range l.Vlen() {
		lm := l.Member(i)
		j, ok := last[string(m.local.Name(lm.NameOff))]
		if !ok {
			return errImpossible
		}
		m.needs.add(t.ID, NeedMember, j)
		if err := m.typesCompatible(lm.Type, t.Member(j).Type, relMatches); err != nil {
			return err
		}
		chosen = append(chosen, j)
	}
	m.budget -= len(m.needs)
	m.needs.atLeast(l.Vlen(), t, NeedMember, chosen)
	return nil
}

func (m *ciliumComparer) enums(l, t btf.Type) error {
	if l.Size() != t.Size() || l.Vlen() > t.Vlen() {
		return errImpossible
	}
	var chosen []uint32
	for i := range l.Vlen() {
		found := false
		for j := uint32(0); j < t.Vlen() && !found; j++ {
			if m.budget--; m.budget < 0 {
				return errNesting
			}
			if found = m.namesMatch(l.Enumerator(i).NameOff, t.Enumerator(j).NameOff); found {
				m.needs.add(t.ID, NeedEnumerator, j)
				chosen = append(chosen, j)
			}
		}
		if !found {
			return errImpossible
		}
	}
	m.budget -= len(m.needs)
	m.needs.atLeast(l.Vlen(), t, NeedEnumerator, chosen)
	return nil
}

// sameEssential compares names; an empty one goes with any.
func sameEssential(a, b []byte) bool {
	return len(a) == 0 || len(b) == 0 || string(ciliumEssential(a)) == string(ciliumEssential(b))
}

// ciliumEssential returns a name without its flavor.
func ciliumEssential[S string | []byte](name S) S { return btf.EssentialFor(btf.Cilium, name) }
