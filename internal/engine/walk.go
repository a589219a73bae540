// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

// The walker over a pair of types: the only place that says when a local type
// and a kernel's agree. There are three relations between them, and for each
// two sets of rules, libbpf's and, with matcher.loose, those of loaders that
// are less strict. Who makes it look at something more of the local type has to
// make signature.go write that down.

// relation is what a relocation wants of two types.
type relation uint8

const (
	// relField is how the types of two fields must go together
	// (bpf_core_fields_are_compat of libbpf). Structs and unions go together, so
	// do all integers and all pointers; enums and forward declarations need the
	// same essential name unless one has none; of arrays the elements are
	// compared, but cilium/ebpf does so only if somebody indexes them.
	relField relation = iota

	// relExists is for type_exists, type_size and target_type_id
	// (__bpf_core_types_are_compat): the kinds agree through pointers, elements
	// and prototypes, but not into structs. Names are the caller's business.
	// cilium/ebpf (btf/core.go, v0.22) looks through the typedefs of the root and
	// compares the index types of arrays.
	relExists

	// relMatches is for type_matches (__bpf_core_types_match): every local member
	// must be in the target by name, and its type must match in turn; behind a
	// pointer names and kinds are enough. cilium/ebpf goes on behind pointers,
	// and an empty name matches any.
	relMatches
)

// maxLevel bounds recursion and chains, as libbpf does.
const maxLevel = 32

type typePair struct{ local, targ btfenc.TypeID }

// types compares the roots of a relocation about a whole type. With loose set
// it reports whether libbpf or cilium/ebpf would match, and leaves in m.needs
// what either needs.
func (m *matcher) types(local, targ btfenc.TypeID, rel relation) (bool, error) {
	if !m.loose {
		return m.roots(local, targ, rel)
	}
	m.loose = false
	ok1, err1 := m.roots(local, targ, rel)
	m.loose = true
	if !ok1 {
		m.needs = m.needs[:0]
	}
	m.budget = limits.MatchSteps
	if m.seen == nil {
		m.seen = make(map[typePair]bool)
	}
	clear(m.seen)
	base := len(m.needs)
	ok2, err2 := m.walk(local, targ, rel, false, maxLevel)
	if !ok2 {
		m.needs = m.needs[:base]
	}
	m.alone = ok1 && !ok2
	switch {
	case ok1 || ok2:
		return true, nil
	case err1 != nil:
		return false, err1
	}
	return false, err2
}

// roots compares two roots as libbpf does, which does not look through their
// typedefs when it compares their kinds.
func (m *matcher) roots(local, targ btfenc.TypeID, rel relation) (bool, error) {
	if l, t := m.local.Type(local), m.targ.Type(targ); rel == relExists && !l.Kind().Compat(t.Kind()) {
		return m.differ(missKind, l, t)
	}
	return m.walk(local, targ, rel, false, maxLevel)
}

// fields compares the types of a field, whose name is for the reason.
func (m *matcher) fields(local, targ btfenc.TypeID, name string) (bool, error) {
	ok, err := m.walk(local, targ, relField, false, maxLevel)
	if !ok {
		m.miss.name = name
	}
	return ok, err
}

// pair reads both sides without modifiers and typedefs.
func (m *matcher) pair(local, targ btfenc.TypeID) (l, t rawbtf.Type, err error) {
	l, ok1 := m.local.SkipMods(local)
	t, ok2 := m.targ.SkipMods(targ)
	if !ok1 || !ok2 || !m.step(1) {
		err = errNesting
	}
	return l, t, err
}

func (m *matcher) need(id btfenc.TypeID, what What, idx uint32) {
	m.needs = append(m.needs, Need{id, what, idx})
}

func (m *matcher) differ(code missCode, l, t rawbtf.Type) (bool, error) {
	m.miss = miss{code: code, local: l, target: t}
	return false, nil
}

func (m *matcher) differIn(code missCode, l, t rawbtf.Type, ln, tn uint32) (bool, error) {
	m.miss = miss{code: code, local: l, target: t, l: ln, t: tn}
	return false, nil
}

// unless returns ok, with the reason that kinds differ if it is false.
func (m *matcher) unless(ok bool, l, t rawbtf.Type) (bool, error) {
	if !ok {
		return m.differ(missKind, l, t)
	}
	return true, nil
}

// walk compares two types. behind says that a pointer led here; level bounds
// the recursion under libbpf's rules.
func (m *matcher) walk(local, targ btfenc.TypeID, rel relation, behind bool, level int) (bool, error) {
	if rel == relMatches && level <= 0 && !m.loose {
		return false, errNesting
	}
	for n := 0; m.loose || n < maxLevel; n++ {
		l, t, err := m.pair(local, targ)
		if err != nil {
			return false, err
		}
		if done, ok, err := m.head(l, t, rel, behind); done || err != nil {
			return ok, err
		}
		switch l.Kind() {
		case btfenc.KindVoid:
			return m.unless(rel != relField, l, t)
		case btfenc.KindInt:
			return m.ints(l, t, rel)
		case btfenc.KindEnum, btfenc.KindEnum64:
			if rel == relMatches {
				return m.enums(l, t)
			}
			return true, nil
		case btfenc.KindStruct, btfenc.KindUnion:
			switch {
			case rel != relMatches:
				return true, nil
			case m.loose:
				return m.membersLoose(l, t)
			}
			return m.members(l, t, behind, level)
		case btfenc.KindFwd:
			return true, nil
		case btfenc.KindFloat:
			return m.unless(rel == relField || m.loose, l, t)
		case btfenc.KindPtr:
			if rel == relField {
				return true, nil
			}
			m.need(t.ID, NeedPointee, 0)
			behind = true
			if local, targ = l.Ref(), t.Ref(); m.loose && rel == relMatches {
				if ok, err := m.declared(local, targ); ok || err != nil {
					return ok, err
				}
			}
		case btfenc.KindArray:
			la, ta := l.Array(), t.Array()
			switch {
			case rel == relField && m.loose:
				return true, nil
			case rel == relMatches && la.Nelems != ta.Nelems:
				return m.differIn(missNelems, l, t, la.Nelems, ta.Nelems)
			case rel == relExists && m.loose:
				m.need(t.ID, NeedIndex, 0)
				if ok, err := m.walk(la.Index, ta.Index, rel, behind, level); !ok {
					return false, err
				}
			}
			local, targ = la.Elem, ta.Elem
		case btfenc.KindFuncProto:
			if rel == relField {
				return m.differ(missKind, l, t)
			}
			if ok, err := m.params(l, t, rel, behind, level); !ok {
				return false, err
			}
			local, targ = l.Ref(), t.Ref()
		default:
			return m.unless(m.loose && rel != relField, l, t)
		}
	}
	return false, errNesting
}

// head compares names and kinds of two types and reports whether that decides
// about them.
func (m *matcher) head(l, t rawbtf.Type, rel relation, behind bool) (done, ok bool, err error) {
	lk, tk := l.Kind(), t.Kind()
	compat := lk.Compat(tk)
	switch {
	case rel == relField && lk.IsComposite() && tk.IsComposite():
		return true, true, nil
	case rel == relMatches && !m.sameName(l, t):
		m.differ(missTypeName, l, t)
		return true, false, nil
	case rel == relMatches && !m.loose:
		done, compat = declares(l, t, behind)
	}
	if !compat {
		m.differ(missKind, l, t)
		return true, false, nil
	}
	if rel == relField {
		if lk.IsAnyEnum() || lk == btfenc.KindFwd {
			if a, b := l.Name(), t.Name(); len(a) > 0 && len(b) > 0 && !m.sameFlavors(a, b) {
				m.differ(missEnumName, l, t)
				return true, false, nil
			}
		}
		return false, false, nil
	}
	if done {
		return true, true, nil
	}
	if m.loose {
		p := typePair{l.ID, t.ID}
		if m.seen[p] {
			return true, true, nil
		}
		if m.seen[p] = true; len(m.seen) > limits.Pairs {
			m.deep = true
			return true, false, errNesting
		}
		if rel == relMatches && lk == btfenc.KindFwd {
			return true, l.KindFlag() == t.KindFlag(), nil
		}
	}
	return false, false, nil
}

// declares compares two kinds by libbpf's rules for type_matches. Behind a
// pointer a forward declaration stands for a struct or a union, and that ends
// the comparison; so does a struct or union there.
func declares(l, t rawbtf.Type, behind bool) (done, ok bool) {
	lk, tk := l.Kind(), t.Kind()
	switch {
	case lk == btfenc.KindFwd && tk == lk:
		return true, l.KindFlag() == t.KindFlag()
	case lk == btfenc.KindFwd:
		return true, behind && forwards(l, t)
	case lk.IsComposite() && behind:
		return true, lk == tk || forwards(t, l)
	}
	return false, lk.Compat(tk)
}

// forwards reports whether f is a forward declaration of t's kind.
func forwards(f, t rawbtf.Type) bool {
	return f.Kind() == btfenc.KindFwd &&
		(t.Kind() == btfenc.KindStruct && !f.KindFlag() || t.Kind() == btfenc.KindUnion && f.KindFlag())
}

// declared reports whether of two pointees one is a forward declaration of the
// other, which is enough for cilium/ebpf.
func (m *matcher) declared(local, targ btfenc.TypeID) (bool, error) {
	l, t, err := m.pair(local, targ)
	return err == nil && (forwards(l, t) || forwards(t, l)), err
}

// sameName compares essential names for type_matches. An empty one matches only
// another empty one under libbpf's rules (bpf_core_names_match), and any
// under the loose ones.
func (m *matcher) sameName(l, t rawbtf.Type) bool {
	if m.loose && (m.local.NameIs(l.NameOff, "") || m.targ.NameIs(t.NameOff, "")) {
		return true
	}
	return m.sameString(l.NameOff, t.NameOff)
}

func (m *matcher) sameString(local, targ uint32) bool {
	l, t := m.local.Name(local), m.targ.Name(targ)
	m.step((len(l) + len(t)) / 64)
	return len(t) <= limits.NameBytes && m.sameFlavors(l, t)
}

// sameFlavors reports whether names differ in flavors at most.
func (m *matcher) sameFlavors(l, t []byte) bool {
	if m.loose {
		return rawbtf.SameEssential(l, t) != 0
	}
	return string(rawbtf.Essential(l)) == string(rawbtf.Essential(t))
}

func (m *matcher) ints(l, t rawbtf.Type, rel relation) (bool, error) {
	if rel != relMatches {
		if m.loose || l.IntOffset() == 0 && t.IntOffset() == 0 {
			return true, nil
		}
		return m.differ(missBitOffset, l, t)
	}
	signed := func(u rawbtf.Type) bool {
		if m.loose {
			return u.IntEncoding() == btfenc.IntSigned
		}
		return u.IntEncoding()&btfenc.IntSigned != 0
	}
	if l.Size() != t.Size() || signed(l) != signed(t) {
		return m.differ(missInt, l, t)
	}
	return true, nil
}

// params compares the parameters of two prototypes.
func (m *matcher) params(l, t rawbtf.Type, rel relation, behind bool, level int) (bool, error) {
	if l.Vlen() != t.Vlen() {
		return m.differIn(missParams, l, t, l.Vlen(), t.Vlen())
	}
	for i := range l.Vlen() {
		if rel == relExists && level <= 0 && !m.loose {
			return false, errNesting
		}
		if ok, err := m.walk(l.Param(i).Type, t.Param(i).Type, rel, behind, level-1); !ok {
			return false, err
		}
	}
	return true, nil
}

// members looks for every local member in the target. Several target members
// can have the name (anonymous ones have none), the first whose type matches
// counts.
func (m *matcher) members(l, t rawbtf.Type, behind bool, level int) (bool, error) {
	if l.Vlen() > t.Vlen() {
		return m.differIn(missVlen, l, t, l.Vlen(), t.Vlen())
	}
	var chosen []uint32
	for i := range l.Vlen() {
		lm := l.Member(i)
		found := false
		m.miss = miss{code: missMember, name: string(m.local.Name(lm.NameOff))}
		for j := uint32(0); j < t.Vlen() && !found; j++ {
			if !m.step(1) {
				return false, errNesting
			}
			tm := t.Member(j)
			if !m.sameString(lm.NameOff, tm.NameOff) {
				continue
			}
			mark := len(m.needs)
			m.need(t.ID, NeedMember, j)
			ok, err := m.walk(lm.Type, tm.Type, relMatches, behind, level-1)
			if err != nil {
				return false, err
			}
			if found = ok; !ok {
				m.needs = m.needs[:mark]
				continue
			}
			chosen = append(chosen, j)
		}
		if !found {
			return false, nil
		}
	}
	m.needCount(t, l.Vlen(), NeedMember, chosen)
	return true, nil
}

// membersLoose takes, of target members with the same name, the last, as
// cilium/ebpf's map of members does.
func (m *matcher) membersLoose(l, t rawbtf.Type) (bool, error) {
	if l.Vlen() > t.Vlen() {
		return false, nil
	}
	if !m.step(int(t.Vlen())) {
		return false, errNesting
	}
	last := make(map[string]uint32, t.Vlen())
	for j := range t.Vlen() {
		last[string(m.targ.Name(t.Member(j).NameOff))] = j
	}
	var chosen []uint32
	for i := range l.Vlen() {
		lm := l.Member(i)
		j, ok := last[string(m.local.Name(lm.NameOff))]
		if !ok {
			return false, nil
		}
		if !m.step(1) {
			return false, errNesting
		}
		m.need(t.ID, NeedMember, j)
		if ok, err := m.walk(lm.Type, t.Member(j).Type, relMatches, false, maxLevel); !ok {
			return false, err
		}
		chosen = append(chosen, j)
	}
	m.needCount(t, l.Vlen(), NeedMember, chosen)
	return true, nil
}

// needCount keeps at least n members or enumerators of t: a type with fewer
// than the local one matches nothing, and several local names may have been
// found in one. chosen are those that it was found in, one for each local name.
func (m *matcher) needCount(t rawbtf.Type, n uint32, what What, chosen []uint32) {
	slices.Sort(chosen)
	if len(slices.Compact(chosen)) == int(n) {
		return
	}
	m.step(len(m.needs))
	seen := make(map[uint32]bool)
	for _, nd := range m.needs {
		if nd.Type == t.ID && nd.What == what {
			seen[nd.Idx] = true
		}
	}
	for i := uint32(0); i < t.Vlen() && uint32(len(seen)) < n; i++ {
		if !seen[i] {
			seen[i] = true
			m.need(t.ID, what, i)
		}
	}
}

// enums looks for every local enumerator in the target by its name. Where loaders
// do not agree on flavors, the first of each is needed.
func (m *matcher) enums(l, t rawbtf.Type) (bool, error) {
	if l.Size() != t.Size() || l.Vlen() > t.Vlen() {
		return m.differ(missEnumSize, l, t)
	}
	var chosen []uint32
	for i := range l.Vlen() {
		le := l.Enumerator(i)
		name, all := m.local.Name(le.NameOff), rawbtf.Libbpf
		if m.loose {
			all = rawbtf.AllLoaders
		}
		by := rawbtf.Loaders(0)
		for j := uint32(0); j < t.Vlen() && by != all; j++ {
			if !m.step(1) {
				return false, errNesting
			}
			to := m.targ.Name(t.Enumerator(j).NameOff)
			m.step((len(name) + len(to)) / 64)
			found := rawbtf.SameEssential(name, to) & all &^ by
			if found == 0 || len(to) > limits.NameBytes {
				continue
			}
			if m.need(t.ID, NeedEnumerator, j); by == 0 {
				chosen = append(chosen, j)
			}
			by |= found
		}
		if by == 0 {
			m.miss = miss{code: missEnumerator, name: string(m.local.Name(le.NameOff))}
			return false, nil
		}
	}
	m.needCount(t, l.Vlen(), NeedEnumerator, chosen)
	return true, nil
}
