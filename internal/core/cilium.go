// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relo"
)

// How cilium/ebpf resolves one relocation on one candidate (coreCalculateFixup
// in btf/core.go, v0.22).

// fixup is the result of a relocation on a candidate. Two fixups are the same to
// cilium/ebpf if both values are equal.
type fixup struct {
	poison        bool
	local, target uint64
	id            bool // target is the place of the candidate, for its type ID
	free          bool // the operand is not compared with the local value
	err           error
}

func (f *fixup) failed(k relo.Kind) bool { return f.poison || k.IsExistence() && f.target == 0 }

func (f *fixup) agrees(o *fixup) bool { return f.local == o.local && f.target == o.target }

func (f *fixup) String() string {
	switch {
	case f.poison:
		return "poisoned"
	case f.id:
		return "a type ID"
	}
	return strconv.FormatUint(f.target, 10)
}

// Errors by which cilium/ebpf gives up on a program.
var (
	errAmbiguous   error = fault{Cause: relo.CauseAmbiguous}
	errUnsupported error = fault{Cause: relo.CauseUnsupported}
	errImpossible        = errors.New("impossible relocation") // the candidate does not match; no error of the program
)

// ciliumMatcher matches specs with types of a kernel as cilium/ebpf does. It is
// scratch memory: not for concurrent use.
type ciliumMatcher struct {
	local, targ *btf.BTF
	seen        map[typePair]bool
	level       []sublevel
	needs       needs // of the last match
	budget      int
	meter       *limits.Meter // of all matches of a table
	deep        bool          // a match took more than limits.Pairs
}

type typePair struct{ local, targ btf.TypeID }

// fixup returns the result of kind k of the spec l on candidate number place of
// its row. Types of modules have no IDs for it.
func (m *ciliumMatcher) fixup(l *spec, k relo.Kind, c candidate, place int) (f fixup) {
	m.local, m.targ, m.budget, m.needs = l.btf, &c.view.BTF, limits.MatchSteps, m.needs[:0]
	clear(m.seen)
	f, err := m.calculateFixup(l, k, c, place)
	if !m.meter.Step(1 + limits.MatchSteps - max(m.budget, 0)) {
		return fixup{err: m.meter.Err()}
	}
	if f.id && c.view.module != "" {
		err = errImpossible
	}
	switch {
	case errors.Is(err, errImpossible) && k.IsExistence():
		return fixup{local: 1}
	case errors.Is(err, errImpossible):
		return fixup{poison: true}
	}
	f.err = err
	return f
}

// calculateFixup is coreCalculateFixup. Errors are as there.
func (m *ciliumMatcher) calculateFixup(l *spec, kind relo.Kind, c candidate, place int) (fixup, error) {
	switch {
	case kind == relo.TypeMatches:
		return fixup{local: 1, target: 1}, m.typesCompatible(l.root, c.id, relMatches)
	case kind.IsType():
		if err := m.typesCompatible(l.root, c.id, relExists); err != nil {
			return fixup{}, err
		}
		switch kind {
		case relo.TypeSize:
			a, err1 := ciliumSize(m.local, l.root)
			b, err2 := ciliumSize(m.targ, c.id)
			return fixup{local: a, target: b}, errors.Join(err1, err2)
		case relo.TargetTypeID:
			return fixup{local: uint64(l.root), target: uint64(place) + 1, id: true}, nil
		}
		return fixup{local: 1, target: 1}, nil
	case kind.IsEnumval():
		return m.findEnumValue(l, kind, c.id)
	}
	if t, _ := m.targ.SkipMods(c.id); t.Kind() == btf.KindFwd {
		return fixup{}, errImpossible
	}
	return m.findField(l, kind, c.id)
}

// findEnumValue finds the enumerator of l in the target (coreFindEnumValue).
func (m *ciliumMatcher) findEnumValue(l *spec, kind relo.Kind, id btf.TypeID) (fixup, error) {
	lt := m.local.Type(l.acc[0].typeID)
	want := ciliumEssential(l.acc[0].name)
	t, _ := m.targ.SkipMods(id)
	if !t.Kind().IsAnyEnum() {
		return fixup{}, errImpossible
	}
	for i := range t.Vlen() {
		e := t.Enumerator(i)
		if string(ciliumEssential(m.targ.Name(e.NameOff))) != want {
			continue
		}
		m.needs.add(t.ID, NeedEnumerator, i)
		if kind == relo.EnumvalExists {
			return fixup{local: 1, target: 1}, nil
		}
		return fixup{local: ciliumValue(&lt, l.acc[0].idx), target: ciliumValue(&t, i)}, nil
	}
	return fixup{}, errImpossible
}

// ciliumValue is the value of an enumerator, whose sign counts only in a signed enum.
func ciliumValue(t *btf.Type, i uint32) uint64 {
	v := t.Enumerator(i).Value
	if t.Kind() == btf.KindEnum && !t.KindFlag() {
		return uint64(uint32(v))
	}
	return v
}

// ciliumField is the place of a field from the start of its root.
type ciliumField struct {
	btf       *btf.BTF
	id        btf.TypeID
	offset    uint32 // bytes
	bitOffset uint32 // from the offset, of a bitfield
	bits      uint32 // of a bitfield, else 0
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

// findField follows the indices of l through both sides (coreFindField).
func (m *ciliumMatcher) findField(l *spec, kind relo.Kind, id btf.TypeID) (fixup, error) {
	local, target := ciliumField{btf: m.local, id: l.root}, ciliumField{btf: m.targ, id: id}
	if err := m.membersCompatible(local.id, target.id); err != nil {
		return fixup{}, err
	}
	if err := errors.Join(local.element(l.raw[0].idx), target.element(l.raw[0].idx)); err != nil {
		return fixup{}, err
	}
	for n := 1; n < len(l.raw); n++ {
		idx := l.raw[n].idx
		lt, _ := m.local.SkipMods(local.id)
		switch lt.Kind() {
		case btf.KindStruct, btf.KindUnion:
			lm := ciliumMember(&lt, idx)
			name := string(m.local.Name(lm.NameOff))
			if name == "" {
				if in, _ := m.local.SkipMods(lm.Type); !in.Kind().IsComposite() {
					return fixup{}, errUnsupported
				}
				local = ciliumField{btf: m.local, id: lm.Type, offset: local.offset + lm.BitOffset/8}
				continue // the target stays where it is
			}
			tt, _ := m.targ.SkipMods(target.id)
			if !tt.Kind().IsComposite() {
				return fixup{}, errImpossible
			}
			tm, last, err := m.findMember(tt, name)
			if err != nil {
				return fixup{}, err
			}
			local = ciliumField{btf: m.local, id: lm.Type, offset: local.offset, bits: lm.BitSize, flexible: idx == lt.Vlen()-1}
			target = ciliumField{btf: m.targ, id: tm.Type, offset: target.offset, bits: tm.BitSize, flexible: last}
			if local.bits == 0 && target.bits == 0 {
				local.offset += lm.BitOffset / 8
				target.offset += tm.BitOffset / 8
				break
			}
			if n+1 < len(l.raw) {
				return fixup{}, fault{Cause: relo.CauseInBitfield}
			}
			if err := errors.Join(local.adjust(lm.BitOffset), target.adjust(tm.BitOffset)); err != nil {
				return fixup{}, err
			}
		case btf.KindArray:
			tt, _ := m.targ.SkipMods(target.id)
			if tt.Kind() != btf.KindArray {
				return fixup{}, errImpossible
			}
			la, ta := lt.Array(), tt.Array()
			switch {
			case la.Nelems == 0 && !local.flexible, ta.Nelems == 0 && !target.flexible:
				return fixup{}, fault{Cause: relo.CauseFlexible}
			case la.Nelems > 0 && idx >= la.Nelems:
				return fixup{}, fault{Cause: relo.CauseIndex, LocalNumber: uint64(idx), TargetNumber: uint64(la.Nelems)}
			case ta.Nelems > 0 && idx >= ta.Nelems:
				return fixup{}, errImpossible
			}
			local = ciliumField{btf: m.local, id: la.Elem, offset: local.offset}
			target = ciliumField{btf: m.targ, id: ta.Elem, offset: target.offset}
			if err := errors.Join(local.element(idx), target.element(idx)); err != nil {
				return fixup{}, err
			}
		default:
			return fixup{}, errUnsupported
		}
		if err := m.membersCompatible(local.id, target.id); err != nil {
			return fixup{}, err
		}
	}
	f, err := m.fieldValue(kind, &local, &target)
	f.free = kind == relo.LShiftU64 || kind == relo.RShiftU64 || local.bits > 0 && (kind == relo.ByteOffset || kind == relo.ByteSize)
	return f, err
}

func (m *ciliumMatcher) fieldValue(k relo.Kind, local, target *ciliumField) (fixup, error) {
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
	return fixup{local: sign(&lt), target: sign(&tt)}, nil // of the same kind
}

// cilium says why cilium/ebpf gives up on changing an instruction, nil where it
// does not (COREFixup.Apply). It changes no width of a load. It cannot read an
// object whose 64-bit loads have fields in the second slot (Instruction.Unmarshal).
func (in insn) cilium(f *fixup) error {
	target := f.target
	if f.id {
		target = 0 // of few bits
	}
	const swap = 0xd0 // the operation of an ALU instruction
	switch class := in.code & 7; {
	case in.second:
		return errNoImm64
	case f.poison:
	case class == classLDX || class == classST || class == classSTX:
		if !f.free && int64(int16(f.local)) != in.operand {
			return in.holdsNot(f.local)
		}
		if target > math.MaxInt16 {
			return fault{Cause: relo.CauseOffset, TargetNumber: target}
		}
	case class == classLD && (in.code != ldImm64 || in.source):
		return errNoImm64
	case class == classALU && in.code&0xf0 == swap:
		return fault{Cause: relo.CauseSwap}
	case class == classLD, class == classALU, class == classALU64:
		if class != classLD && in.code&srcX != 0 {
			return errNoImmediate
		}
		if !f.free && int64(f.local) != in.operand {
			return in.holdsNot(f.local)
		}
		if class != classLD && target > math.MaxInt32 {
			return fault{Cause: relo.CauseValue, TargetNumber: target}
		}
	default:
		return fault{Cause: relo.CauseInsnClass, LocalNumber: uint64(class)}
	}
	return nil
}

// membersCompatible compares the types of two fields (coreAreMembersCompatible).
func (m *ciliumMatcher) membersCompatible(local, targ btf.TypeID) error {
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

// sameEssential compares names; an empty one goes with any.
func sameEssential(a, b []byte) bool {
	return len(a) == 0 || len(b) == 0 || string(ciliumEssential(a)) == string(ciliumEssential(b))
}

// ciliumEssential returns a name without its flavor.
func ciliumEssential[S string | []byte](name S) S { return btf.EssentialFor(btf.Cilium, name) }

// sublevel is a struct or union that is searched for a member.
type sublevel struct {
	id     btf.TypeID
	offset uint32 // bits
	parent int    // place of the one that embeds it, which has it as member idx
	idx    uint32
}

// findMember looks for a member level by level, with the offset from the start of
// typ, and reports whether it is the last of its struct (coreFindMember).
func (m *ciliumMatcher) findMember(typ btf.Type, name string) (btf.Member, bool, error) {
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
func (m *ciliumMatcher) needPath(n int, idx uint32) {
	from := len(m.needs)
	for ; n > 0; n = m.level[n].parent {
		m.needs.add(m.level[n].id, NeedMember, idx)
		idx = m.level[n].idx
	}
	m.needs.add(m.level[0].id, NeedMember, idx)
	slices.Reverse(m.needs[from:])
}

// ciliumMember returns a member. Where the struct has no bitfields of its own,
// a type of fewer bits than it has bytes for makes one.
func ciliumMember(t *btf.Type, i uint32) btf.Member {
	m := t.Member(i)
	if in := t.BTF().Type(m.Type); !t.KindFlag() && BitfieldInt(in) {
		m.BitOffset += in.IntOffset()
		m.BitSize = in.IntData() & 0xff
	}
	return m
}

// pair reads both sides without modifiers and typedefs. It reports whether the
// pair is already compared, or is being compared.
func (m *ciliumMatcher) pair(local, targ btf.TypeID) (l, t btf.Type, known bool, err error) {
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
func (m *ciliumMatcher) typesCompatible(local, targ btf.TypeID, rel relation) error {
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
func (m *ciliumMatcher) params(l, t btf.Type, rel relation) error {
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
func (m *ciliumMatcher) namesMatch(local, targ uint32) bool {
	l, t := m.local.Name(local), m.targ.Name(targ)
	m.budget -= (len(l) + len(t)) / 64
	return sameEssential(l, t)
}

// members compares the members of one name (coreTypesMatch). Of several in the target
// the last counts.
func (m *ciliumMatcher) members(l, t btf.Type) error {
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

func (m *ciliumMatcher) enums(l, t btf.Type) error {
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

// ciliumSize is the size of a type in bytes, where pointers have 8 (Sizeof in
// btf/types.go).
func ciliumSize(b *btf.BTF, id btf.TypeID) (uint64, error) {
	if t, ok := b.SkipMods(id); ok && t.Kind() == btf.KindVoid {
		return 0, nil
	}
	size, err := b.SizeWith(8, id)
	if err == nil && size > math.MaxInt32 {
		err = btf.ErrTooBig
	}
	return uint64(size), err
}

// ciliumAlign is the alignment of a bitfield's type (alignof in btf/types.go).
func ciliumAlign(b *btf.BTF, id btf.TypeID) (uint32, error) {
	for range limits.Modifiers {
		t, ok := b.SkipMods(id)
		switch k := t.Kind(); {
		case ok && k == btf.KindArray:
			id = t.Array().Elem
			continue
		case ok && (k.IsAnyEnum() || k == btf.KindInt) && t.Size() > 0 && t.Size()&(t.Size()-1) == 0:
			return t.Size(), nil
		}
		break
	}
	return 0, fault{Cause: relo.CauseAlignment}
}
