// SPDX-License-Identifier: Apache-2.0

package core

import (
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// ayaTakes reports whether aya accepts libbpf's match with l, which is in m.out.
func (m *matcher) ayaTakes(l *spec) bool {
	if !l.kind.IsField() {
		return true
	}
	for i := range l.acc {
		if l.acc[i].name != "" || i == 0 {
			continue
		}
		if up := &m.out.acc[i-1]; up.name != "" {
			in := m.targ.Type(up.typeID)
			t, _ := m.targ.SkipMods(in.Member(up.idx).Type)
			if in.Kind() == btf.KindUnion && t.Kind() == btf.KindArray && t.Array().Nelems == 0 {
				return false
			}
		}
	}
	last := len(l.acc) - 1
	if l.acc[last].name == "" {
		return true
	}
	lt := m.local.Type(l.acc[last].typeID)
	local := lt.Member(l.acc[last].idx).Type
	lt, _ = m.local.SkipMods(local)
	if k := lt.Kind(); k != btf.KindArray && !k.IsAnyEnum() && k != btf.KindFwd {
		return true
	}
	tt := m.targ.Type(m.out.acc[last].typeID)
	targ := tt.Member(m.out.acc[last].idx).Type
	for range maxLevel {
		lt, _ = m.local.SkipMods(local)
		tt, _ = m.targ.SkipMods(targ)
		switch k := lt.Kind(); {
		case k == btf.KindArray && tt.Kind() == k:
			local, targ = lt.Array().Elem, tt.Array().Elem
		case k.IsAnyEnum(), k == btf.KindFwd:
			return (len(lt.Name()) == 0) == (len(tt.Name()) == 0)
		default:
			return true
		}
	}
	return false
}

// field returns the size and class of the whole field at the end of s, none for a
// bitfield. They differ from those of a load only for arrays.
func (s *spec) field(of load) load {
	last := &s.acc[len(s.acc)-1]
	id := last.typeID
	if last.name != "" {
		mem := s.btf.Type(id).Member(last.idx)
		if mem.BitSize > 0 {
			return load{}
		}
		id = mem.Type
	}
	t, _ := s.btf.SkipMods(id)
	if of.ok && t.Kind() != btf.KindArray {
		return of
	}
	size, err := s.btf.SizeOf(t.ID)
	if err != nil {
		return load{}
	}
	if t.Kind() == btf.KindArray {
		return load{size: size, kind: btf.KindArray, ok: true}
	}
	l, _ := s.loadOf(size, t.ID) // it fails only for arrays
	return l
}

// ayaRefuses reports whether aya refuses the local side of s.
func (s *spec) ayaRefuses() bool {
	if !s.kind.IsField() {
		return s.kind == relo.TypeMatches
	}
	parent := s.raw[0].typeID // type of the last accessor
	id := parent
	for _, lv := range s.raw[1:] {
		if lv.member {
			mem := s.btf.Type(lv.typeID).Member(lv.idx)
			if !s.btf.NameIs(mem.NameOff, "") {
				parent = lv.typeID
			}
			t, _ := s.btf.SkipMods(mem.Type)
			id = t.ID
			continue
		}
		arr, up := s.btf.Type(id), s.btf.Type(parent)
		if n := arr.Array().Nelems; lv.idx >= n && (n > 0 || up.Kind() != btf.KindStruct || lv.idx != up.Vlen()-1) {
			return true
		}
		id, parent = lv.typeID, lv.typeID
	}
	return false
}
