package relolog

import (
	"fmt"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// matcher matches specs of one object with types of one target
// (bpf_core_spec_match of libbpf). It is a scratch area: not for concurrent
// use, and what match returns is valid until the next call.
//
// With loose set it also takes what cilium/ebpf would: a struct for a union at
// the root, arrays whose elements differ as long as nobody indexes them, and
// bitfield-like integers. Loose matches are a superset of libbpf's; they decide
// what a minimized BTF keeps, never what the log says.
type matcher struct {
	local, targ *rawbtf.BTF
	loose       bool

	out    spec
	needs  []Need
	budget int
	miss   mismatch
}

// matchBudget bounds the members and parameters looked at for one match. The
// largest struct of a real kernel has a few thousand with all that it embeds.
const matchBudget = 1 << 20

// Need is a part of the target that a match depends upon, besides the types on
// its way, whose kind and size always count.
type Need struct {
	Type rawbtf.TypeID // type that is needed, never a modifier
	What What
	Idx  uint32 // member or enumerator, by What
}

// What says which part of a type a [Need] is about.
type What uint8

const (
	NeedType       What = iota // the type: its kind, size, and name if it has one
	NeedMember                 // struct or union: the type and member Idx, whose own type is needed by kind and size
	NeedEnumerator             // enum: the type and enumerator Idx
	NeedPointee                // pointer: what it points to
	NeedIndex                  // array: its index type
	NeedName                   // int: its name
)

// missCode says why a candidate does not match.
type missCode uint8

const (
	missNone missCode = iota
	missKind
	missMember
	missMemberKind
	missEnumName
	missIntOffset
	missNotArray
	missShortArray
	missEnumerator
	missNotEnum
	missMatch
)

// mismatch is a reason, kept unformatted because most are never read.
type mismatch struct {
	code       missCode
	name       string
	local, got rawbtf.Type
	idx, n     uint32
}

// String is the reason that a log gives for a candidate that does not match.
func (m *mismatch) String() string {
	switch m.code {
	case missKind, missMemberKind:
		s := fmt.Sprintf("incompatible kinds: %s vs %s", m.local.Kind(), m.got.Kind())
		if m.name != "" {
			s = fmt.Sprintf("member %s: %s", m.name, s)
		}
		return s
	case missMember:
		return fmt.Sprintf("no member %s", m.name)
	case missEnumName:
		return fmt.Sprintf("member %s: different names: %s %s vs %s", m.name, m.local.Kind(), m.local.Name(), m.got.Name())
	case missIntOffset:
		return fmt.Sprintf("member %s: integer with a bit offset", m.name)
	case missNotArray:
		return fmt.Sprintf("not an array: %s", m.got.Kind())
	case missShortArray:
		return fmt.Sprintf("array too short: element %d of %d", m.idx, m.n)
	case missEnumerator:
		return fmt.Sprintf("enum has no value %s", m.name)
	case missNotEnum:
		return fmt.Sprintf("not an enum: %s", m.got.Kind())
	case missMatch:
		return m.name
	}
	return ""
}

// match matches l with the candidate id and fills m.out and m.needs. When it
// reports false without an error, m.miss has the reason. An error is one that
// ends the load in libbpf.
func (m *matcher) match(l *spec, id rawbtf.TypeID) (bool, error) {
	m.local, m.budget = l.btf, matchBudget
	m.out = spec{btf: m.targ, root: id, kind: l.kind, acc: m.out.acc[:0], raw: m.out.raw[:0]}
	m.needs = append(m.needs[:0], Need{Type: id})
	m.miss = mismatch{}
	switch {
	case l.kind == KindTypeMatches:
		if !m.loose {
			return m.typesMatch(l.root, id, false, maxLevel)
		}
		return m.typesMatchAny(l.root, id)
	case l.kind.IsType():
		if !m.loose {
			return m.typesCompat(l.root, id, maxLevel)
		}
		return m.typesCompatAny(l.root, id)
	case l.kind.IsEnumval():
		return m.enumval(l, id)
	}
	return m.field(l, id)
}

func (m *matcher) enumval(l *spec, id rawbtf.TypeID) (bool, error) {
	t, ok := m.targ.SkipMods(id)
	if !ok {
		return false, errNesting
	}
	if !t.Kind().IsAnyEnum() {
		m.miss = mismatch{code: missNotEnum, got: t}
		return false, nil
	}
	want := rawbtf.Essential(l.acc[0].name)
	for i := range t.Vlen() {
		name := m.targ.Name(t.Enumerator(i).NameOff)
		if len(name) >= len(want) && string(rawbtf.Essential(name)) == want {
			m.out.acc = append(m.out.acc, accessor{t.ID, i, string(name)})
			m.out.raw = append(m.out.raw, step{t.ID, i, true})
			m.needs = append(m.needs, Need{t.ID, NeedEnumerator, i})
			return true, nil
		}
	}
	m.miss = mismatch{code: missEnumerator, name: want}
	return false, nil
}

// field follows the turning points of l through the target's types.
func (m *matcher) field(l *spec, id rawbtf.TypeID) (bool, error) {
	t, ok := m.targ.SkipMods(id)
	if !ok {
		return false, errNesting
	}
	if m.loose {
		if ok, err := m.fieldsCompat(l.root, id, ""); !ok {
			return false, err
		}
	}
	for i := range l.acc {
		a := &l.acc[i]
		if a.name != "" {
			mt, ok := m.local.SkipMods(a.typeID)
			if !ok {
				return false, errNesting
			}
			m.miss = mismatch{code: missMember, name: a.name}
			next, ok, err := m.member(a.name, mt.Member(a.idx).Type, t)
			if !ok {
				return false, err
			}
			if t, ok = m.targ.SkipMods(next); !ok {
				return false, errNesting
			}
			continue
		}
		if i > 0 {
			if t.Kind() != rawbtf.KindArray {
				m.miss = mismatch{code: missNotArray, got: t}
				return false, nil
			}
			arr := t.Array()
			if a.idx >= arr.Nelems && !m.out.flexible(arr) {
				m.miss = mismatch{code: missShortArray, idx: a.idx, n: arr.Nelems}
				return false, nil
			}
			if t, ok = m.targ.SkipMods(arr.Elem); !ok {
				return false, errNesting
			}
			if m.loose {
				if ok, err := m.fieldsCompat(a.typeID, t.ID, ""); !ok {
					return false, err
				}
			}
		}
		if len(m.out.raw) == maxSpec {
			return false, errTooDeep
		}
		if err := m.out.element(t.ID, a.idx); err != nil {
			return false, err
		}
	}
	return true, nil
}

// member looks for a member by name in t and in the anonymous structs and
// unions that it embeds, depth first, and returns its type
// (bpf_core_match_member of libbpf). What it passes through on the way down
// stays in m.out only where it leads to the member.
func (m *matcher) member(name string, local rawbtf.TypeID, t rawbtf.Type) (next rawbtf.TypeID, ok bool, err error) {
	if !t.Kind().IsComposite() {
		return 0, false, nil
	}
	for i := range t.Vlen() {
		if len(m.out.raw) == maxSpec {
			return 0, false, errTooDeep
		}
		if m.budget--; m.budget < 0 {
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
			if next, ok, err = m.member(name, local, sub); ok || err != nil {
				return next, ok, err
			}
			m.pop(mem)
		} else if m.targ.NameIs(mem.NameOff, name) {
			if ok, err := m.fieldsCompat(local, mem.Type, name); !ok {
				return 0, false, err
			}
			m.push(t.ID, i, mem)
			m.out.acc = append(m.out.acc, accessor{t.ID, i, name})
			return mem.Type, true, nil
		}
	}
	return 0, false, nil
}

func (m *matcher) push(id rawbtf.TypeID, i uint32, mem rawbtf.Member) {
	m.out.raw = append(m.out.raw, step{id, i, true})
	m.out.bitOff += mem.BitOffset
	m.needs = append(m.needs, Need{id, NeedMember, i})
}

func (m *matcher) pop(mem rawbtf.Member) {
	m.out.raw = m.out.raw[:len(m.out.raw)-1]
	m.out.bitOff -= mem.BitOffset
	m.needs = m.needs[:len(m.needs)-1]
}

// fieldsCompat checks the types of two fields (bpf_core_fields_are_compat of
// libbpf). Structs and unions go together, so do all integers and all
// pointers; enums and forward declarations need the same essential name unless
// one has none; of arrays the elements are compared.
func (m *matcher) fieldsCompat(local, targ rawbtf.TypeID, name string) (bool, error) {
	for range maxLevel {
		l, ok1 := m.local.SkipMods(local)
		t, ok2 := m.targ.SkipMods(targ)
		if !ok1 || !ok2 {
			return false, errNesting
		}
		lk, tk := l.Kind(), t.Kind()
		if lk.IsComposite() && tk.IsComposite() {
			return true, nil
		}
		if !lk.Compat(tk) {
			m.miss = mismatch{code: missMemberKind, name: name, local: l, got: t}
			return false, nil
		}
		switch lk {
		case rawbtf.KindPtr, rawbtf.KindFloat:
			return true, nil
		case rawbtf.KindFwd, rawbtf.KindEnum, rawbtf.KindEnum64:
			a, b := rawbtf.Essential(l.Name()), rawbtf.Essential(t.Name())
			if len(a) == 0 || len(b) == 0 || string(a) == string(b) {
				return true, nil
			}
			m.miss = mismatch{code: missEnumName, name: name, local: l, got: t}
			return false, nil
		case rawbtf.KindInt:
			if m.loose || l.IntOffset() == 0 && t.IntOffset() == 0 {
				return true, nil
			}
			m.miss = mismatch{code: missIntOffset, name: name}
			return false, nil
		case rawbtf.KindArray:
			if m.loose {
				return true, nil
			}
			local, targ = l.Array().Elem, t.Array().Elem
		default:
			m.miss = mismatch{code: missMemberKind, name: name, local: l, got: t}
			return false, nil
		}
	}
	return false, errNesting
}
