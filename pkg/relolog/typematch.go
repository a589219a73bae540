package relolog

import (
	"fmt"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// maxLevel bounds recursion and chains in type comparisons, as libbpf does.
const maxLevel = 32

// pairs reads the two sides of a comparison without modifiers and typedefs.
func (m *matcher) pair(local, targ rawbtf.TypeID) (l, t rawbtf.Type, err error) {
	l, ok1 := m.local.SkipMods(local)
	t, ok2 := m.targ.SkipMods(targ)
	if m.budget--; !ok1 || !ok2 || m.budget < 0 {
		err = errNesting
	}
	return l, t, err
}

func (m *matcher) need(id rawbtf.TypeID, what What, idx uint32) {
	m.needs = append(m.needs, Need{id, what, idx})
}

func (m *matcher) differ(l, t rawbtf.Type) (bool, error) {
	m.miss = mismatch{code: missKind, local: l, got: t}
	return false, nil
}

// typesCompat decides type_exists, type_size and target_type_id
// (__bpf_core_types_are_compat of libbpf): the kinds of both sides are
// compared, through pointers, array elements and function prototypes, but not
// into structs. Names are the caller's business.
func (m *matcher) typesCompat(local, targ rawbtf.TypeID, level int) (bool, error) {
	lr, tr := m.local.Type(local), m.targ.Type(targ)
	if !lr.Kind().Compat(tr.Kind()) {
		return m.differ(lr, tr)
	}
	for range maxLevel {
		l, t, err := m.pair(local, targ)
		if err != nil {
			return false, err
		}
		if !l.Kind().Compat(t.Kind()) {
			return m.differ(l, t)
		}
		m.need(t.ID, NeedType, 0)
		switch l.Kind() {
		case rawbtf.KindVoid, rawbtf.KindStruct, rawbtf.KindUnion, rawbtf.KindEnum, rawbtf.KindFwd, rawbtf.KindEnum64:
			return true, nil
		case rawbtf.KindInt:
			if l.IntOffset() == 0 && t.IntOffset() == 0 {
				return true, nil
			}
			m.miss = mismatch{code: missIntOffset}
			return false, nil
		case rawbtf.KindPtr:
			m.need(t.ID, NeedPointee, 0)
			local, targ = l.Ref(), t.Ref()
		case rawbtf.KindArray:
			local, targ = l.Array().Elem, t.Array().Elem
		case rawbtf.KindFuncProto:
			if l.Vlen() != t.Vlen() {
				m.miss = mismatch{code: missMatch, name: fmt.Sprintf("function of %d parameters vs %d", l.Vlen(), t.Vlen())}
				return false, nil
			}
			for i := range l.Vlen() {
				if level <= 0 {
					return false, errNesting
				}
				lp, tp, err := m.pair(l.Param(i).Type, t.Param(i).Type)
				if err != nil {
					return false, err
				}
				if ok, err := m.typesCompat(lp.ID, tp.ID, level-1); !ok {
					return false, err
				}
			}
			lp, tp, err := m.pair(l.Ref(), t.Ref())
			if err != nil {
				return false, err
			}
			local, targ = lp.ID, tp.ID
		default:
			return m.differ(l, t)
		}
	}
	return false, errNesting
}

// namesMatch compares essential names; an empty one matches only another
// empty one (bpf_core_names_match of libbpf).
func (m *matcher) namesMatch(local, targ uint32) bool {
	l, t := m.local.Name(local), m.targ.Name(targ)
	return string(rawbtf.Essential(l)) == string(rawbtf.Essential(t))
}

// typesMatch decides type_matches (__bpf_core_types_match of libbpf). Every
// local member must be in the target by name, and its type must match in turn;
// behind a pointer names and kinds are enough.
func (m *matcher) typesMatch(local, targ rawbtf.TypeID, behindPtr bool, level int) (bool, error) {
	if level <= 0 {
		return false, errNesting
	}
	for range maxLevel {
		l, t, err := m.pair(local, targ)
		if err != nil {
			return false, err
		}
		m.need(t.ID, NeedType, 0)
		if !m.namesMatch(l.NameOff, t.NameOff) {
			m.miss = mismatch{code: missMatch, name: fmt.Sprintf("different names: %s vs %s", typeName(l), typeName(t))}
			return false, nil
		}
		lk, tk := l.Kind(), t.Kind()
		switch {
		case lk == rawbtf.KindFwd && tk == lk:
			return m.orDiffer(l.KindFlag() == t.KindFlag(), l, t)
		case lk == rawbtf.KindFwd:
			return m.orDiffer(behindPtr && (tk == rawbtf.KindStruct && !l.KindFlag() || tk == rawbtf.KindUnion && l.KindFlag()), l, t)
		case lk.IsAnyEnum():
			if !tk.IsAnyEnum() {
				return m.differ(l, t)
			}
			return m.enumsMatch(l, t)
		case lk.IsComposite() && behindPtr:
			return m.orDiffer(lk == tk || tk == rawbtf.KindFwd && (lk == rawbtf.KindUnion) == t.KindFlag(), l, t)
		case lk != tk:
			return m.differ(l, t)
		}
		switch lk {
		case rawbtf.KindVoid:
			return true, nil
		case rawbtf.KindStruct, rawbtf.KindUnion:
			return m.compositesMatch(l, t, behindPtr, level)
		case rawbtf.KindInt:
			m.need(t.ID, NeedName, 0)
			same := l.Size() == t.Size() && l.IntEncoding()&rawbtf.IntSigned == t.IntEncoding()&rawbtf.IntSigned
			if !same {
				m.miss = mismatch{code: missMatch, name: fmt.Sprintf("integers of different size or sign: %s", typeName(l))}
			}
			return same, nil
		case rawbtf.KindPtr:
			m.need(t.ID, NeedPointee, 0)
			behindPtr = true
			local, targ = l.Ref(), t.Ref()
		case rawbtf.KindArray:
			la, ta := l.Array(), t.Array()
			if la.Nelems != ta.Nelems {
				m.miss = mismatch{code: missMatch, name: fmt.Sprintf("arrays of %d elements vs %d", la.Nelems, ta.Nelems)}
				return false, nil
			}
			local, targ = la.Elem, ta.Elem
		case rawbtf.KindFuncProto:
			if l.Vlen() != t.Vlen() {
				m.miss = mismatch{code: missMatch, name: fmt.Sprintf("function of %d parameters vs %d", l.Vlen(), t.Vlen())}
				return false, nil
			}
			for i := range l.Vlen() {
				if ok, err := m.typesMatch(l.Param(i).Type, t.Param(i).Type, behindPtr, level-1); !ok {
					return false, err
				}
			}
			local, targ = l.Ref(), t.Ref()
		default:
			return m.differ(l, t)
		}
	}
	return false, errNesting
}

func (m *matcher) orDiffer(ok bool, l, t rawbtf.Type) (bool, error) {
	if !ok {
		return m.differ(l, t)
	}
	return true, nil
}

// compositesMatch looks for every local member in the target. Several target
// members can have the name (anonymous ones have none), the first whose type
// matches counts.
func (m *matcher) compositesMatch(l, t rawbtf.Type, behindPtr bool, level int) (bool, error) {
	if l.Vlen() > t.Vlen() {
		m.miss = mismatch{code: missMatch, name: fmt.Sprintf("%s: %d members vs %d", typeName(l), l.Vlen(), t.Vlen())}
		return false, nil
	}
	for i := range l.Vlen() {
		lm := l.Member(i)
		found := false
		m.miss = mismatch{code: missMember, name: string(m.local.Name(lm.NameOff))}
		for j := uint32(0); j < t.Vlen() && !found; j++ {
			if m.budget--; m.budget < 0 {
				return false, errNesting
			}
			tm := t.Member(j)
			if !m.namesMatch(lm.NameOff, tm.NameOff) {
				continue
			}
			mark := len(m.needs)
			m.need(t.ID, NeedMember, j)
			ok, err := m.typesMatch(lm.Type, tm.Type, behindPtr, level-1)
			if err != nil {
				return false, err
			}
			if found = ok; !ok {
				m.needs = m.needs[:mark]
			}
		}
		if !found {
			return false, nil
		}
	}
	m.needCount(t, l.Vlen(), NeedMember)
	return true, nil
}

// needCount keeps at least n members or enumerators of t: a type with fewer
// than the local one matches nothing, and several local names may have been
// found in one.
func (m *matcher) needCount(t rawbtf.Type, n uint32, what What) {
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

// enumsMatch looks for every local enumerator in the target by its name.
func (m *matcher) enumsMatch(l, t rawbtf.Type) (bool, error) {
	if l.Size() != t.Size() || l.Vlen() > t.Vlen() {
		m.miss = mismatch{code: missMatch, name: fmt.Sprintf("%s: different size, or fewer values", typeName(l))}
		return false, nil
	}
	for i := range l.Vlen() {
		le := l.Enumerator(i)
		found := false
		for j := uint32(0); j < t.Vlen() && !found; j++ {
			if m.budget--; m.budget < 0 {
				return false, errNesting
			}
			if found = m.namesMatch(le.NameOff, t.Enumerator(j).NameOff); found {
				m.need(t.ID, NeedEnumerator, j)
			}
		}
		if !found {
			m.miss = mismatch{code: missEnumerator, name: string(m.local.Name(le.NameOff))}
			return false, nil
		}
	}
	m.needCount(t, l.Vlen(), NeedEnumerator)
	return true, nil
}

// typeName returns how C names a type: "struct task_struct", "u64".
func typeName(t rawbtf.Type) string {
	name := string(t.Name())
	if name == "" {
		name = "<anon>"
	}
	switch k := t.Kind(); k {
	case rawbtf.KindStruct, rawbtf.KindUnion:
		return k.String() + " " + name
	case rawbtf.KindEnum, rawbtf.KindEnum64:
		return "enum " + name
	case rawbtf.KindFwd:
		if t.KindFlag() {
			return "union " + name
		}
		return "struct " + name
	case rawbtf.KindInt, rawbtf.KindFloat, rawbtf.KindTypedef:
		return name
	case rawbtf.KindVoid:
		return "void"
	default:
		return k.String()
	}
}
