// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// How cilium/ebpf finds a field in a candidate and computes its value (coreFindField
// and coreFindMember in btf/core.go).

// ciliumField is the place of a field from the start of its root.
type ciliumField struct {
	btf       *btf.BTF
	id        btf.TypeID
	offset    uint32 // bytes
	bitOffset uint32 // bits from offset to a bitfield
	bits      uint32 // width of a bitfield, else 0
	flexible  bool   // the last member of its struct
}

func (f *ciliumField) element(n uint32) error {
	if n == 0 {
		return nil
	}
	size, err := ciliumSize(f.btf, f.id)
	f.offset += n * uint32(size)
	return err
}

// adjust adds the offset of a bitfield, in whole loads of the size of its type.
func (f *ciliumField) adjust(bits uint32) error {
	align, err := ciliumAlign(f.btf, f.id)
	if err != nil {
		return err
	}
	offset := bits / 8 / align * align
	f.bitOffset = bits - offset*8
	f.offset += offset
	return nil
}

func (f *ciliumField) sizeBits() (uint64, error) {
	if f.bits > 0 {
		return uint64(f.bits), nil
	}
	size, err := ciliumSize(f.btf, f.id)
	return size * 8, err
}

// ciliumFinder finds fields. It is scratch memory.
type ciliumFinder struct {
	ciliumComparer
	level []sublevel
}

// findField follows the indices of l through both sides (coreFindField).
func (m *ciliumFinder) findField(l *spec, kind relo.Kind, id btf.TypeID) (fixup, error) {
	local, target := ciliumField{btf: m.local, id: l.root}, ciliumField{btf: m.targ, id: id}
	if err := m.membersCompatible(local.id, target.id); err != nil {
		return fixup{}, err
	}
	if err := errors.Join(local.element(l.raw[0].idx), target.element(l.raw[0].idx)); err != nil {
		return fixup{}, err
	}
	for n := 1; n < len(l.raw); n++ {
		named, err := m.descend(&local, &target, l.raw[n].idx, n+1 == len(l.raw))
		if err == nil && named {
			err = m.membersCompatible(local.id, target.id)
		}
		if err != nil {
			return fixup{}, err
		}
	}
	f, err := m.fieldValue(kind, &local, &target)
	f.free = kind == relo.LShiftU64 || kind == relo.RShiftU64 || local.bits > 0 && (kind == relo.ByteOffset || kind == relo.ByteSize)
	return f, err
}

// descend follows one index of a path, the last one if last is set. It returns false for an anonymous member, which moves only the
// local side: findMember finds the members in it by name.
func (m *ciliumFinder) descend(local, target *ciliumField, idx uint32, last bool) (named bool, err error) {
	switch lt, _ := m.local.SkipMods(local.id); lt.Kind() {
	case btf.KindStruct, btf.KindUnion:
		lm := ciliumMember(&lt, idx)
		if name := string(m.local.Name(lm.NameOff)); name != "" {
			return true, m.descendMember(local, target, &lt, idx, name, last)
		}
		if in, _ := m.local.SkipMods(lm.Type); !in.Kind().IsComposite() {
			return false, errUnsupported
		}
		*local = ciliumField{btf: m.local, id: lm.Type, offset: local.offset + lm.BitOffset/8}
		return false, nil
	case btf.KindArray:
		return true, m.descendArray(local, target, lt.Array(), idx)
	}
	return false, errUnsupported
}

// descendMember goes from two structs or unions to member idx of lt, the local one, and to the target's member of that name.
func (m *ciliumFinder) descendMember(local, target *ciliumField, lt *btf.Type, idx uint32, name string, last bool) error {
	tt, _ := m.targ.SkipMods(target.id)
	if !tt.Kind().IsComposite() {
		return errImpossible
	}
	lm := ciliumMember(lt, idx)
	tm, flexible, err := m.findMember(tt, name)
	if err != nil {
		return err
	}
	*local = ciliumField{btf: m.local, id: lm.Type, offset: local.offset, bits: lm.BitSize, flexible: idx == lt.Vlen()-1}
	*target = ciliumField{btf: m.targ, id: tm.Type, offset: target.offset, bits: tm.BitSize, flexible: flexible}
	if local.bits == 0 && target.bits == 0 {
		local.offset += lm.BitOffset / 8
		target.offset += tm.BitOffset / 8
		return nil
	}
	if !last {
		return fault{Cause: relo.CauseInBitfield}
	}
	return errors.Join(local.adjust(lm.BitOffset), target.adjust(tm.BitOffset))
}

// descendArray goes from two arrays to element idx.
func (m *ciliumFinder) descendArray(local, target *ciliumField, la btf.Array, idx uint32) error {
	tt, _ := m.targ.SkipMods(target.id)
	if tt.Kind() != btf.KindArray {
		return errImpossible
	}
	ta := tt.Array()
	switch {
	case la.Nelems == 0 && !local.flexible, ta.Nelems == 0 && !target.flexible:
		return fault{Cause: relo.CauseFlexible}
	case la.Nelems > 0 && idx >= la.Nelems:
		return fault{Cause: relo.CauseIndex, LocalNumber: uint64(idx), TargetNumber: uint64(la.Nelems)}
	case ta.Nelems > 0 && idx >= ta.Nelems:
		return errImpossible
	}
	*local = ciliumField{btf: m.local, id: la.Elem, offset: local.offset}
	*target = ciliumField{btf: m.targ, id: ta.Elem, offset: target.offset}
	return errors.Join(local.element(idx), target.element(idx))
}

func (m *ciliumFinder) fieldValue(k relo.Kind, local, target *ciliumField) (fixup, error) {
	switch k {
	case relo.FieldExists:
		return fixup{local: 1, target: 1}, nil
	case relo.ByteOffset:
		return fixup{local: uint64(local.offset), target: uint64(target.offset)}, nil
	case relo.ByteSize:
		a, err1 := ciliumSize(m.local, local.id)
		b, err2 := ciliumSize(m.targ, target.id)
		return fixup{local: a, target: b}, errors.Join(err1, err2)
	case relo.LShiftU64:
		if m.targ.Order() == binary.BigEndian {
			size, err := ciliumSize(m.targ, target.id)
			return fixup{target: 64 - size*8 + uint64(target.bitOffset)}, err
		}
		bits, err := target.sizeBits()
		return fixup{target: 64 - uint64(target.bitOffset) - bits}, err
	case relo.RShiftU64:
		bits, err := target.sizeBits()
		return fixup{target: 64 - bits}, err
	}
	lt, _ := m.local.SkipMods(local.id)
	tt, _ := m.targ.SkipMods(target.id)
	sign := func(t *btf.Type) uint64 {
		if t.Kind().IsAnyEnum() && t.KindFlag() || t.Kind() == btf.KindInt && t.IntEncoding()&btf.IntSigned != 0 {
			return 1
		}
		return 0
	}
	if k := lt.Kind(); !k.IsAnyEnum() && k != btf.KindInt {
		return fixup{}, fault{Cause: relo.CauseSign}
	}
	// membersCompatible has checked that tt is of the same kind.
	return fixup{local: sign(&lt), target: sign(&tt)}, nil
}

// membersCompatible compares the types of two fields (coreAreMembersCompatible).
func (m *ciliumFinder) membersCompatible(local, targ btf.TypeID) error {
	l, ok1 := m.local.SkipMods(local)
	t, ok2 := m.targ.SkipMods(targ)
	switch lk, tk := l.Kind(), t.Kind(); {
	case !ok1 || !ok2:
		return errNesting
	case lk.IsComposite() && tk.IsComposite():
		return nil
	case !lk.Compat(tk):
		return errImpossible
	case lk == btf.KindArray, lk == btf.KindPtr, lk == btf.KindFloat, lk == btf.KindInt:
		return nil
	case lk.IsAnyEnum(), lk == btf.KindFwd:
		if !sameEssential(l.Name(), t.Name()) {
			return errImpossible
		}
		return nil
	}
	return errUnsupported
}

// sublevel is a struct or union that is searched for a member.
type sublevel struct {
	id     btf.TypeID
	offset uint32 // bits
	parent int    // place of the one that embeds it, which has it as member idx
	idx    uint32
}

// findMember looks for a member level by level, with the offset from the start of
// typ, and reports whether it is the last of its struct (coreFindMember).
func (m *ciliumFinder) findMember(typ btf.Type, name string) (btf.Member, bool, error) {
	type place struct {
		id     btf.TypeID
		offset uint32
	}
	visited := make([]place, 0, maxLevel)
	m.level = append(m.level[:0], sublevel{id: typ.ID})
	for n := 0; n < len(m.level); n++ {
		in := m.level[n]
		if slices.Contains(visited, place{in.id, in.offset}) {
			continue
		}
		if len(visited) == maxLevel {
			return btf.Member{}, false, errNesting
		}
		visited = append(visited, place{in.id, in.offset})
		t := m.targ.Type(in.id)
		for i := range t.Vlen() {
			if m.budget--; m.budget < 0 {
				return btf.Member{}, false, errNesting
			}
			mem := t.Member(i)
			if m.targ.NameIs(mem.NameOff, name) {
				m.needPath(n, i)
				mem = ciliumMember(&t, i)
				mem.BitOffset += in.offset
				return mem, i == t.Vlen()-1, nil
			}
			if !m.targ.NameIs(mem.NameOff, "") {
				continue
			}
			sub, _ := m.targ.SkipMods(mem.Type)
			if !sub.Kind().IsComposite() {
				m.needPath(n, i)
				return btf.Member{}, false, fault{Cause: relo.CauseMember}
			}
			m.level = append(m.level, sublevel{sub.ID, in.offset + mem.BitOffset, n, i})
		}
	}
	return btf.Member{}, false, errImpossible
}

// needPath adds member idx of level n, and the members that lead there.
func (m *ciliumFinder) needPath(n int, idx uint32) {
	from := len(m.needs)
	for ; n > 0; n = m.level[n].parent {
		m.needs.add(m.level[n].id, NeedMember, idx)
		idx = m.level[n].idx
	}
	m.needs.add(m.level[0].id, NeedMember, idx)
	slices.Reverse(m.needs[from:])
}
