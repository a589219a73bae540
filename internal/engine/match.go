// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/bits"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

// matcher matches specs with types of a kernel (bpf_core_spec_match of libbpf).
// It is a scratch area: not for concurrent use, and what match leaves in it is
// valid until the next call.
//
// Its two settings are libbpf's rules, and with loose set the union of those
// of all loaders known, which is a superset of libbpf's (see walk.go). Loose
// matches decide what a minimized BTF keeps, never what the log says.
type matcher struct {
	local, targ *rawbtf.BTF
	loose       bool

	out    spec // of the match
	needs  []Need
	budget int           // steps that are left
	meter  *limits.Meter // of all matches of a table; nil is none
	miss   miss
	seen   map[typePair]bool
	alone  bool // libbpf's rules match whole types and those of the others do not
	stuck  bool // cilium/ebpf gives up, and no program of the object loads
	inner  bool // the search for a member came across an anonymous one
	deep   bool // a match took more than limits.Pairs
	named  at   // the first member of the name that the search found
	other  at   // what other loaders take in place of libbpf's: a member, or one or more enumerators
	level  []sublevel
}

// at is a member that a search found; the zero value is none.
type at struct {
	typeID btfenc.TypeID
	idx    uint32
	bitOff uint32 // from the start of the root
}

// sublevel is a struct or union that cilium/ebpf searches for a member.
type sublevel struct {
	t      rawbtf.Type
	bitOff uint32
}

// Need is a part of the target that a match depends upon, besides the types on
// its way, whose kind and size always count.
type Need struct {
	Type btfenc.TypeID // type that is needed, never a modifier
	What What
	Idx  uint32 // member or enumerator, by What
}

// What says which part of a type a [Need] is about.
type What uint8

const (
	NeedMember     What = iota // struct or union: the type and member Idx, whose own type is needed by kind and size
	NeedEnumerator             // enum: the type and enumerator Idx
	NeedPointee                // pointer: what it points to
	NeedIndex                  // array: its index type
)

// step takes n steps, and reports whether the match goes on.
func (m *matcher) step(n int) bool {
	m.budget -= n
	return m.budget >= 0 && (m.meter == nil || m.meter.Step(n))
}

// match matches l with the type id of m.targ and fills m.out and m.needs. When
// it reports false without an error, m.miss has the reason. An error is one
// that ends the load in libbpf.
func (m *matcher) match(l *spec, id btfenc.TypeID) (bool, error) {
	m.local, m.budget = l.btf, limits.MatchSteps
	m.out = spec{btf: m.targ, root: id, kind: l.kind, acc: m.out.acc[:0], raw: m.out.raw[:0]}
	m.needs = m.needs[:0]
	m.miss, m.alone, m.stuck, m.other = miss{}, false, false, at{}
	switch {
	case l.kind == KindTypeMatches:
		return m.types(l.root, id, relMatches)
	case l.kind.IsType():
		return m.types(l.root, id, relExists)
	case l.kind.IsEnumval():
		return m.enumval(l, id)
	}
	return m.field(l, id)
}

func (m *matcher) enumval(l *spec, id btfenc.TypeID) (bool, error) {
	t, ok := m.targ.SkipMods(id)
	if !ok {
		return false, errNesting
	}
	if !t.Kind().IsAnyEnum() {
		m.miss = miss{code: missNotEnum, target: t}
		return false, nil
	}
	want, matched := l.acc[0].name, false
	for by, i := rawbtf.Loaders(0), uint32(0); i < t.Vlen() && by != rawbtf.AllLoaders; i++ {
		if !m.step(1) {
			return false, errNesting
		}
		e := t.Enumerator(i)
		name := m.targ.Name(e.NameOff)
		found := rawbtf.SameEssential(want, name) &^ by // it is the first for these
		if found == 0 {
			continue
		}
		by |= found
		m.needs = append(m.needs, Need{t.ID, NeedEnumerator, i})
		if !matched && (m.loose || found&rawbtf.Libbpf != 0) {
			matched = true
			m.out.acc = append(m.out.acc, accessor{t.ID, i, string(name)})
			m.out.raw = append(m.out.raw, level{t.ID, i, true})
		}
		if found != rawbtf.AllLoaders { // they do not agree on the flavor, and each has its own
			m.other.bitOff = m.other.bitOff*31 + uint32(e.Value)
			m.other.typeID, m.other.idx = t.ID, m.other.idx<<8|uint32(found)
		}
	}
	if matched {
		return true, nil
	}
	m.miss = miss{code: missEnumerator, name: rawbtf.Essential(want)}
	return false, nil
}

// field follows the turning points of l through the target's types.
func (m *matcher) field(l *spec, id btfenc.TypeID) (bool, error) {
	t, ok := m.targ.SkipMods(id)
	if !ok {
		return false, errNesting
	}
	if m.loose {
		if ok, err := m.fields(l.root, id, ""); !ok {
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
			m.miss = miss{code: missMember, name: a.name}
			m.inner, m.named = false, at{}
			base := m.out.bitOff
			next, ok, err := m.member(a.name, mt.Member(a.idx).Type, t)
			if m.inner {
				m.search(t, a.name, base, ok)
			}
			m.bitfields(mt, a.idx, i == len(l.acc)-1)
			if !ok {
				return false, err
			}
			if m.budget < 0 {
				return false, errNesting
			}
			if t, ok = m.targ.SkipMods(next); !ok {
				return false, errNesting
			}
			continue
		}
		if i > 0 {
			if t.Kind() != btfenc.KindArray {
				m.miss = miss{code: missNotArray, target: t}
				return false, nil
			}
			arr := t.Array()
			if a.idx >= arr.Nelems && !m.out.flexible(arr) {
				m.stuck = arr.Nelems == 0
				m.miss = miss{code: missShortArray, l: a.idx, t: arr.Nelems}
				return false, nil
			}
			if t, ok = m.targ.SkipMods(arr.Elem); !ok {
				return false, errNesting
			}
			if m.loose {
				if ok, err := m.fields(a.typeID, t.ID, ""); !ok {
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
func (m *matcher) member(name string, local btfenc.TypeID, t rawbtf.Type) (next btfenc.TypeID, ok bool, err error) {
	if !t.Kind().IsComposite() {
		return 0, false, nil
	}
	for i := range t.Vlen() {
		if len(m.out.raw) == maxSpec {
			return 0, false, errTooDeep
		}
		if !m.step(1) {
			return 0, false, errNesting
		}
		mem := t.Member(i)
		if m.targ.NameIs(mem.NameOff, "") {
			m.inner = true
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
			if m.named == (at{}) {
				m.named = at{t.ID, i, m.out.bitOff + mem.BitOffset}
			}
			if ok, err := m.fields(local, mem.Type, name); !ok {
				if !m.loose { // libbpf does not take its step back
					m.out.raw = append(m.out.raw, level{t.ID, i, true})
					m.out.bitOff += mem.BitOffset
				}
				return 0, false, err
			}
			m.push(t.ID, i, mem)
			m.out.acc = append(m.out.acc, accessor{t.ID, i, name})
			return mem.Type, true, nil
		}
	}
	return 0, false, nil
}

// ciliumNested is how many structs cilium/ebpf searches for a member before it
// gives up (maxResolveDepth).
const ciliumNested = 32

// search looks for a member as cilium/ebpf does, level by level, beginning at a
// bit offset. It notes if that ends with an error, and if it does not end at the
// only member of the name that [matcher.member] has found. ok says that this
// one matches.
func (m *matcher) search(t rawbtf.Type, name string, base uint32, ok bool) {
	if !t.Kind().IsComposite() {
		return
	}
	m.level = append(m.level[:0], sublevel{t, base})
	for n := 0; n < len(m.level); n++ {
		if n == ciliumNested {
			m.stuck = true
			return
		}
		in := m.level[n]
		for i := range in.t.Vlen() {
			if !m.step(1) {
				return
			}
			mem := in.t.Member(i)
			if m.targ.NameIs(mem.NameOff, name) {
				found := at{in.t.ID, i, in.bitOff + mem.BitOffset}
				if last := len(m.out.acc) - 1; found != m.named || ok && (at{m.out.acc[last].typeID, m.out.acc[last].idx, m.out.bitOff}) != found {
					m.other = found
				}
				return
			}
			if !m.targ.NameIs(mem.NameOff, "") {
				continue
			}
			sub, _ := m.targ.SkipMods(mem.Type)
			if !sub.Kind().IsComposite() {
				m.stuck = true
				return
			}
			m.level = append(m.level, sublevel{sub, in.bitOff + mem.BitOffset})
		}
	}
}

// bitfields notes that cilium/ebpf gives up where the local member or the one
// found is a bitfield: in the middle of a path, and where it knows no alignment
// of a type. It looks before it compares the types.
func (m *matcher) bitfields(local rawbtf.Type, idx uint32, last bool) {
	if m.named == (at{}) {
		return
	}
	lm := local.Member(idx)
	targ := m.targ.Type(m.named.typeID)
	tm := targ.Member(m.named.idx)
	if isBitfield(m.local, local, lm) || isBitfield(m.targ, targ, tm) {
		m.stuck = m.stuck || !last || !aligned(m.local, lm.Type) || !aligned(m.targ, tm.Type)
	}
}

// isBitfield reports whether a member of t is a bitfield for cilium/ebpf, which
// takes one of an integer with fewer bits than its size has for one, too, as
// BTF had them before structs had a kind flag.
func isBitfield(b *rawbtf.BTF, t rawbtf.Type, mem rawbtf.Member) bool {
	if t.KindFlag() {
		return mem.BitSize > 0
	}
	return BitfieldInt(b.Type(mem.Type))
}

// BitfieldInt reports whether t is an integer that stands for a bitfield in old BTF.
func BitfieldInt(t rawbtf.Type) bool {
	return t.Kind() == btfenc.KindInt && (t.IntOffset() > 0 || t.IntData()&0xff/8 != t.Size())
}

// aligned reports whether cilium/ebpf knows the alignment of a type (alignof in
// its btf/types.go): that of integers and enums, unless their size is odd.
func aligned(b *rawbtf.BTF, id btfenc.TypeID) bool {
	t := element(b, id)
	return (t.Kind() == btfenc.KindInt || t.Kind().IsAnyEnum()) && !odd(b, id)
}

// odd reports whether a type is an integer or an enum, or an array of such,
// whose size is no power of two.
func odd(b *rawbtf.BTF, id btfenc.TypeID) bool {
	t := element(b, id)
	return (t.Kind() == btfenc.KindInt || t.Kind().IsAnyEnum()) && bits.OnesCount32(t.Size()) != 1
}

// element returns a type without modifiers, of an array the innermost elements'.
func element(b *rawbtf.BTF, id btfenc.TypeID) rawbtf.Type {
	for range maxLevel {
		t, ok := b.SkipMods(id)
		if !ok || t.Kind() != btfenc.KindArray {
			return t
		}
		id = t.Array().Elem
	}
	return rawbtf.Type{}
}

func (m *matcher) push(id btfenc.TypeID, i uint32, mem rawbtf.Member) {
	m.out.raw = append(m.out.raw, level{id, i, true})
	m.out.bitOff += mem.BitOffset
	m.needs = append(m.needs, Need{id, NeedMember, i})
}

func (m *matcher) pop(mem rawbtf.Member) {
	m.out.raw = m.out.raw[:len(m.out.raw)-1]
	m.out.bitOff -= mem.BitOffset
	m.needs = m.needs[:len(m.needs)-1]
}
