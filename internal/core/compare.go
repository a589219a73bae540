// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relo"
)

// libbpf's comparison of a local type with a kernel's. Everything in the local type
// that it depends on has to be in signature.go.

// relation is how two types have to agree.
type relation uint8

const (
	// relField is for the types of two fields (bpf_core_fields_are_compat). Structs
	// and unions agree, as do all integers and all pointers. Enums and forward
	// declarations need the same essential name unless one has none. Arrays agree
	// if their elements do; cilium/ebpf compares these only if the path has an index.
	relField relation = iota

	// relExists is for type_exists, type_size and target_type_id
	// (__bpf_core_types_are_compat): the kinds agree through pointers, elements
	// and prototypes, but not into structs. Names do not count.
	// cilium/ebpf (btf/core.go, v0.22) looks through the typedefs of the root and
	// compares the index types of arrays.
	relExists

	// relMatches is for type_matches (__bpf_core_types_match): every local member
	// must be in the target by name, and its type must match in turn; behind a
	// pointer names and kinds are enough. cilium/ebpf goes on behind pointers,
	// and an empty name matches any.
	relMatches
)

// comparer compares types of an object with a kernel's. It is scratch memory: not for
// concurrent use.
type comparer struct {
	local, targ *btf.BTF
	floats      bool // whole types may be floating-point numbers, as aya accepts them

	needs  needs
	budget int           // remaining steps
	meter  *limits.Meter // shared by all matches of a table; nil is none
	miss   miss
	float  bool // the match reached a floating-point number
}

// comparisons returns the meter for all matches of a table.
func comparisons(ctx context.Context) *limits.Meter {
	return limits.NewMeter(ctx, limits.Comparisons, "comparisons of types")
}

// spend takes n steps of the budget, and reports whether the match goes on.
func (m *comparer) spend(n int) bool {
	m.budget -= n
	return m.budget >= 0 && (m.meter == nil || m.meter.Step(n))
}

// compareRoots compares the roots of a relocation about a whole type. libbpf compares
// their kinds without looking through their typedefs (bpf_core_types_are_compat).
func (m *comparer) compareRoots(local, targ btf.TypeID, rel relation) (bool, error) {
	if l, t := m.local.Type(local), m.targ.Type(targ); rel == relExists && !l.Kind().Compat(t.Kind()) {
		return m.differ(relo.CandidateKind, l, t, 0, 0)
	}
	return m.compare(local, targ, rel, false, maxLevel)
}

// fieldsCompatible compares the types of a field (bpf_core_fields_are_compat). The
// name is for the reason.
func (m *comparer) fieldsCompatible(local, targ btf.TypeID, name string) (bool, error) {
	ok, err := m.compare(local, targ, relField, false, maxLevel)
	if !ok {
		m.miss.name = name
	}
	return ok, err
}

// pair reads both sides without modifiers and typedefs.
func (m *comparer) pair(local, targ btf.TypeID) (l, t btf.Type, err error) {
	l, ok1 := m.local.SkipMods(local)
	t, ok2 := m.targ.SkipMods(targ)
	if !ok1 || !ok2 || !m.spend(1) {
		err = errNesting
	}
	return l, t, err
}

// differ says why two types differ, with a number of each.
func (m *comparer) differ(code relo.Code, l, t btf.Type, ln, tn uint32) (bool, error) {
	m.miss = miss{code: code, local: l, target: t, localNumber: ln, targetNumber: tn}
	return false, nil
}

// unless returns ok, with the reason that kinds differ if it is false.
func (m *comparer) unless(ok bool, l, t btf.Type) (bool, error) {
	if !ok {
		return m.differ(relo.CandidateKind, l, t, 0, 0)
	}
	return true, nil
}

// compare compares two types by a relation, which names libbpf's function for it.
// behind says that a pointer led here; level bounds the recursion.
func (m *comparer) compare(local, targ btf.TypeID, rel relation, behind bool, level int) (bool, error) {
	if rel == relMatches && level <= 0 {
		return false, errNesting
	}
	for range maxLevel {
		l, t, err := m.pair(local, targ)
		if err != nil {
			return false, err
		}
		if done, ok := m.head(l, t, rel, behind); done {
			return ok, nil
		}
		switch l.Kind() {
		case btf.KindVoid:
			return m.unless(rel != relField, l, t)
		case btf.KindInt:
			return m.ints(l, t, rel)
		case btf.KindEnum, btf.KindEnum64:
			if rel == relMatches {
				return m.enumsMatch(l, t)
			}
			return true, nil
		case btf.KindStruct, btf.KindUnion:
			if rel == relMatches {
				return m.compositesMatch(l, t, behind, level)
			}
			return true, nil
		case btf.KindFwd:
			return true, nil
		case btf.KindFloat:
			m.float = true
			return m.unless(rel == relField || m.floats, l, t)
		case btf.KindPtr:
			if rel == relField {
				return true, nil
			}
			m.needs.add(t.ID, NeedPointee, 0)
			behind = true
			local, targ = l.Ref(), t.Ref()
		case btf.KindArray:
			la, ta := l.Array(), t.Array()
			if rel == relMatches && la.Nelems != ta.Nelems {
				return m.differ(relo.CandidateElements, l, t, la.Nelems, ta.Nelems)
			}
			local, targ = la.Elem, ta.Elem
		case btf.KindFuncProto:
			if rel == relField {
				return m.differ(relo.CandidateKind, l, t, 0, 0)
			}
			if ok, err := m.params(l, t, rel, behind, level); !ok {
				return false, err
			}
			local, targ = l.Ref(), t.Ref()
		default:
			return m.differ(relo.CandidateKind, l, t, 0, 0)
		}
	}
	return false, errNesting
}

// head compares names and kinds of two types and reports whether that decides
// about them.
func (m *comparer) head(l, t btf.Type, rel relation, behind bool) (done, ok bool) {
	lk, tk := l.Kind(), t.Kind()
	compat := lk.Compat(tk)
	switch {
	case rel == relField && lk.IsComposite() && tk.IsComposite():
		return true, true
	case rel == relMatches && !m.namesMatch(l.NameOff, t.NameOff):
		m.differ(relo.CandidateTypeName, l, t, 0, 0)
		return true, false
	case rel == relMatches:
		done, compat = declares(l, t, behind)
	}
	switch a, b := l.Name(), t.Name(); {
	case !compat:
		m.differ(relo.CandidateKind, l, t, 0, 0)
		return true, false
	case rel == relField && (lk.IsAnyEnum() || lk == btf.KindFwd) &&
		len(a) > 0 && len(b) > 0 && string(btf.Essential(a)) != string(btf.Essential(b)):
		m.differ(relo.CandidateMemberName, l, t, 0, 0)
		return true, false
	}
	return done, done
}

// declares compares two kinds by libbpf's rules for type_matches. Behind a
// pointer a forward declaration is as good as a struct or a union. Both end the
// comparison.
func declares(l, t btf.Type, behind bool) (done, ok bool) {
	lk, tk := l.Kind(), t.Kind()
	switch {
	case lk == btf.KindFwd && tk == lk:
		return true, l.KindFlag() == t.KindFlag()
	case lk == btf.KindFwd:
		return true, behind && forwards(l, t)
	case lk.IsComposite() && behind:
		return true, lk == tk || forwards(t, l)
	}
	return false, lk.Compat(tk)
}

// forwards reports whether f is a forward declaration of t's kind.
func forwards(f, t btf.Type) bool {
	return f.Kind() == btf.KindFwd &&
		(t.Kind() == btf.KindStruct && !f.KindFlag() || t.Kind() == btf.KindUnion && f.KindFlag())
}

// namesMatch compares essential names. An empty one matches only another empty
// one (bpf_core_names_match).
func (m *comparer) namesMatch(local, targ uint32) bool {
	l, t := m.local.Name(local), m.targ.Name(targ)
	m.spend((len(l) + len(t)) / 64)
	return len(t) <= limits.NameBytes && string(btf.Essential(l)) == string(btf.Essential(t))
}

func (m *comparer) ints(l, t btf.Type, rel relation) (bool, error) {
	signed := func(u btf.Type) bool { return u.IntEncoding()&btf.IntSigned != 0 }
	switch {
	case rel != relMatches && (l.IntOffset() != 0 || t.IntOffset() != 0):
		return m.differ(relo.CandidateBitOffset, l, t, 0, 0)
	case rel == relMatches && (l.Size() != t.Size() || signed(l) != signed(t)):
		return m.differ(relo.CandidateInteger, l, t, 0, 0)
	}
	return true, nil
}

// params compares the parameters of two prototypes.
func (m *comparer) params(l, t btf.Type, rel relation, behind bool, level int) (bool, error) {
	if l.Vlen() != t.Vlen() {
		return m.differ(relo.CandidateParameters, l, t, l.Vlen(), t.Vlen())
	}
	for i := range l.Vlen() {
		if rel == relExists && level <= 0 {
			return false, errNesting
		}
		if ok, err := m.compare(l.Param(i).Type, t.Param(i).Type, rel, behind, level-1); !ok {
			return false, err
		}
	}
	return true, nil
}

// compositesMatch looks for every local member in the target
// (bpf_core_composites_match). Several target members can have the name (anonymous
// ones have none), the first whose type matches counts.
func (m *comparer) compositesMatch(l, t btf.Type, behind bool, level int) (bool, error) {
	if l.Vlen() > t.Vlen() {
		return m.differ(relo.CandidateMembers, l, t, l.Vlen(), t.Vlen())
	}
	var chosen []uint32
	for i := range l.Vlen() {
		lm := l.Member(i)
		found := false
		m.miss = miss{code: relo.CandidateMember, name: string(m.local.Name(lm.NameOff))}
		for j := uint32(0); j < t.Vlen() && !found; j++ {
			if !m.spend(1) {
				return false, errNesting
			}
			tm := t.Member(j)
			if !m.namesMatch(lm.NameOff, tm.NameOff) {
				continue
			}
			mark := len(m.needs)
			m.needs.add(t.ID, NeedMember, j)
			ok, err := m.compare(lm.Type, tm.Type, relMatches, behind, level-1)
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
	m.spend(len(m.needs))
	m.needs.atLeast(l.Vlen(), t, NeedMember, chosen)
	return true, nil
}

// enumsMatch looks for every local enumerator in the target by its name
// (bpf_core_enums_match).
func (m *comparer) enumsMatch(l, t btf.Type) (bool, error) {
	if l.Size() != t.Size() || l.Vlen() > t.Vlen() {
		return m.differ(relo.CandidateEnumSize, l, t, 0, 0)
	}
	var chosen []uint32
	for i := range l.Vlen() {
		name := l.Enumerator(i).NameOff
		found := false
		for j := uint32(0); j < t.Vlen() && !found; j++ {
			if !m.spend(1) {
				return false, errNesting
			}
			if found = m.namesMatch(name, t.Enumerator(j).NameOff); found {
				m.needs.add(t.ID, NeedEnumerator, j)
				chosen = append(chosen, j)
			}
		}
		if !found {
			m.miss = miss{code: relo.CandidateEnumerator, name: string(m.local.Name(name))}
			return false, nil
		}
	}
	m.spend(len(m.needs))
	m.needs.atLeast(l.Vlen(), t, NeedEnumerator, chosen)
	return true, nil
}

// Compatible reports whether a type of an object agrees with one of a kernel by
// libbpf's rules for typed externs (bpf_core_types_are_compat): without modifiers
// and typedefs the kinds agree through pointers, elements and prototypes. Names do
// not count. It is false for types that nest too deeply.
func Compatible(local *btf.BTF, lid btf.TypeID, kernel *btf.BTF, kid btf.TypeID) bool {
	m := comparer{local: local, targ: kernel, budget: limits.ExternSteps}
	ok, err := m.compare(lid, kid, relExists, false, maxLevel)
	return ok && err == nil
}
