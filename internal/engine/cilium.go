// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

// What cilium/ebpf makes of one relocation on one candidate (coreCalculateFixup
// in btf/core.go, v0.22). The rules of match.go and walk.go decide what a
// minimized BTF keeps; these decide for cilium/ebpf alone. They are used where a
// decision can depend on more than outcomes, or where one is asked for.

// fixup is what a relocation of a group comes to on a candidate. cilium/ebpf
// takes two for the same if both values are.
type fixup struct {
	poison        bool
	local, target uint64
	id            bool // target is the place of the candidate, for its type ID
	free          bool // the operand is not compared with the local value
	err           error
}

func (f *fixup) failed(k Kind) bool { return f.poison || k.IsExistence() && f.target == 0 }

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
	errAmbiguous   = errors.New("ambiguous relocation")
	errUnsupported = errors.New("not supported")
	errImpossible  = errors.New("impossible relocation") // or incompatible types: no error of the program
)

// ciliumMatcher is the scratch area of one fixup.
type ciliumMatcher struct {
	local, targ *rawbtf.BTF
	seen        map[typePair]bool
	budget      int
	meter       *limits.Meter // of all fixups of a table; nil is none
}

// fixup returns what the spec l comes to on candidate number place of its row.
// Types of modules have no IDs for it, unless they are merged with vmlinux's.
func (m *ciliumMatcher) fixup(l *spec, c candidate, place int, merged bool) (f fixup) {
	m.local, m.targ, m.budget = l.btf, &c.view.BTF, limits.MatchSteps
	clear(m.seen)
	f, err := m.calc(l, c, place)
	if m.meter != nil && !m.meter.Step(1+limits.MatchSteps-max(m.budget, 0)) {
		return fixup{err: m.meter.Err()}
	}
	if f.id && c.view.module != "" && !merged {
		err = errImpossible
	}
	switch {
	case errors.Is(err, errImpossible) && l.kind.IsExistence():
		return fixup{local: 1}
	case errors.Is(err, errImpossible):
		return fixup{poison: true}
	}
	f.err = err
	return f
}

func (m *ciliumMatcher) calc(l *spec, c candidate, place int) (fixup, error) {
	switch {
	case l.kind == KindTypeMatches:
		return fixup{local: 1, target: 1}, m.matches(l.root, c.id, 0)
	case l.kind.IsType():
		if err := m.compatible(l.root, c.id, 0); err != nil {
			return fixup{}, err
		}
		switch l.kind {
		case KindTypeSize:
			a, err1 := ciliumSize(m.local, l.root)
			b, err2 := ciliumSize(m.targ, c.id)
			return fixup{local: a, target: b}, errors.Join(err1, err2)
		case KindTargetTypeID:
			return fixup{local: uint64(l.root), target: uint64(place) + 1, id: true}, nil
		}
		return fixup{local: 1, target: 1}, nil
	case l.kind.IsEnumval():
		return m.enumval(l, c.id)
	}
	if t, _ := m.targ.SkipMods(c.id); t.Kind() == btfenc.KindFwd {
		return fixup{}, errImpossible
	}
	return m.field(l, c.id)
}

func (m *ciliumMatcher) enumval(l *spec, id btfenc.TypeID) (fixup, error) {
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
		if l.kind == KindEnumvalExists {
			return fixup{local: 1, target: 1}, nil
		}
		return fixup{local: ciliumValue(&lt, l.acc[0].idx), target: ciliumValue(&t, i)}, nil
	}
	return fixup{}, errImpossible
}

// ciliumValue is the value of an enumerator, whose sign counts only in a signed enum.
func ciliumValue(t *rawbtf.Type, i uint32) uint64 {
	v := t.Enumerator(i).Value
	if t.Kind() == btfenc.KindEnum && !t.KindFlag() {
		return uint64(uint32(v))
	}
	return v
}

// ciliumField is the place of a field from the start of its root.
type ciliumField struct {
	btf       *rawbtf.BTF
	id        btfenc.TypeID
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

// field follows the indices of l through both sides (coreFindField).
func (m *ciliumMatcher) field(l *spec, id btfenc.TypeID) (fixup, error) {
	local, target := ciliumField{btf: m.local, id: l.root}, ciliumField{btf: m.targ, id: id}
	if err := m.fields(local.id, target.id); err != nil {
		return fixup{}, err
	}
	if err := errors.Join(local.element(l.raw[0].idx), target.element(l.raw[0].idx)); err != nil {
		return fixup{}, err
	}
	for n := 1; n < len(l.raw); n++ {
		idx := l.raw[n].idx
		lt, _ := m.local.SkipMods(local.id)
		switch lt.Kind() {
		case btfenc.KindStruct, btfenc.KindUnion:
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
			tm, last, err := m.member(tt, name)
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
				return fixup{}, errors.New("can't descend into bitfield")
			}
			if err := errors.Join(local.adjust(lm.BitOffset), target.adjust(tm.BitOffset)); err != nil {
				return fixup{}, err
			}
		case btfenc.KindArray:
			tt, _ := m.targ.SkipMods(target.id)
			if tt.Kind() != btfenc.KindArray {
				return fixup{}, errImpossible
			}
			la, ta := lt.Array(), tt.Array()
			switch {
			case la.Nelems == 0 && !local.flexible, ta.Nelems == 0 && !target.flexible:
				return fixup{}, errors.New("invalid flexible array")
			case la.Nelems > 0 && idx >= la.Nelems:
				return fixup{}, fmt.Errorf("index %d of %d elements", idx, la.Nelems)
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
		if err := m.fields(local.id, target.id); err != nil {
			return fixup{}, err
		}
	}
	f, err := m.fieldValue(l.kind, &local, &target)
	f.free = l.kind == KindLShiftU64 || l.kind == KindRShiftU64 || local.bits > 0 && (l.kind == KindByteOffset || l.kind == KindByteSize)
	return f, err
}

func (m *ciliumMatcher) fieldValue(k Kind, local, target *ciliumField) (fixup, error) {
	switch k {
	case KindFieldExists:
		return fixup{local: 1, target: 1}, nil
	case KindByteOffset:
		return fixup{local: uint64(local.offset), target: uint64(target.offset)}, nil
	case KindByteSize:
		a, err1 := ciliumSize(m.local, local.id)
		b, err2 := ciliumSize(m.targ, target.id)
		return fixup{local: a, target: b}, errors.Join(err1, err2)
	case KindLShiftU64:
		if m.targ.Order() == binary.BigEndian {
			size, err := ciliumSize(m.targ, target.id)
			return fixup{target: 64 - size*8 + uint64(target.bitOffset)}, err
		}
		bits, err := target.sizeBits()
		return fixup{target: 64 - uint64(target.bitOffset) - bits}, err
	case KindRShiftU64:
		bits, err := target.sizeBits()
		return fixup{target: 64 - bits}, err
	}
	lt, _ := m.local.SkipMods(local.id)
	tt, _ := m.targ.SkipMods(target.id)
	sign := func(t *rawbtf.Type) uint64 {
		if t.Kind().IsAnyEnum() && t.KindFlag() || t.Kind() == btfenc.KindInt && t.IntEncoding()&btfenc.IntSigned != 0 {
			return 1
		}
		return 0
	}
	if k := lt.Kind(); !k.IsAnyEnum() && k != btfenc.KindInt {
		return fixup{}, errors.New("no signedness")
	}
	return fixup{local: sign(&lt), target: sign(&tt)}, nil // of the same kind
}

// cilium says why cilium/ebpf gives up on changing an instruction, nil where it
// does not (COREFixup.Apply). It changes no width of a load.
func (in insn) cilium(f *fixup) error {
	target := f.target
	if f.id {
		target = 0 // of few bits
	}
	const swap = 0xd0 // the operation of an ALU instruction
	switch class := in.code & 7; {
	case f.poison:
	case class == classLDX || class == classST || class == classSTX:
		if !f.free && int64(int16(f.local)) != in.operand {
			return fmt.Errorf("instruction holds %d, not %d", in.operand, int64(f.local))
		}
		if target > math.MaxInt16 {
			return fmt.Errorf("offset %d does not fit the instruction", target)
		}
	case class == classLD && in.code != ldImm64:
		return errors.New("load has no 64-bit immediate operand")
	case class == classALU && in.code&0xf0 == swap:
		return errors.New("instruction swaps bytes")
	case class == classLD, class == classALU, class == classALU64:
		if class != classLD && in.code&srcX != 0 {
			return errors.New("instruction has no immediate operand")
		}
		if !f.free && int64(f.local) != in.operand {
			return fmt.Errorf("instruction holds %d, not %d", in.operand, int64(f.local))
		}
		if class != classLD && target > math.MaxInt32 {
			return fmt.Errorf("value %d does not fit the instruction", target)
		}
	default:
		return fmt.Errorf("instruction of class %d cannot be relocated", class)
	}
	return nil
}

// fields compares the types of two fields (coreAreMembersCompatible).
func (m *ciliumMatcher) fields(local, targ btfenc.TypeID) error {
	l, ok1 := m.local.SkipMods(local)
	t, ok2 := m.targ.SkipMods(targ)
	switch lk, tk := l.Kind(), t.Kind(); {
	case !ok1 || !ok2:
		return errNesting
	case lk.IsComposite() && tk.IsComposite():
		return nil
	case !lk.Compat(tk):
		return errImpossible
	case lk == btfenc.KindArray, lk == btfenc.KindPtr, lk == btfenc.KindFloat, lk == btfenc.KindInt:
		return nil
	case lk.IsAnyEnum(), lk == btfenc.KindFwd:
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
func ciliumEssential[S string | []byte](name S) S { return rawbtf.EssentialFor(rawbtf.Cilium, name) }

// member looks for a member level by level, with the offset from the start of
// typ, and reports whether it is the last of its struct (coreFindMember).
func (m *ciliumMatcher) member(typ rawbtf.Type, name string) (rawbtf.Member, bool, error) {
	type place struct {
		id     btfenc.TypeID
		offset uint32 // bits
	}
	level, visited := []place{{typ.ID, 0}}, make(map[place]bool)
	for ; len(level) > 0; level = level[1:] {
		at := level[0]
		if visited[at] {
			continue
		}
		if len(visited) >= maxLevel {
			return rawbtf.Member{}, false, errNesting
		}
		visited[at] = true
		t := m.targ.Type(at.id)
		for i := range t.Vlen() {
			if m.budget--; m.budget < 0 {
				return rawbtf.Member{}, false, errNesting
			}
			mem := ciliumMember(&t, i)
			if m.targ.NameIs(mem.NameOff, name) {
				mem.BitOffset += at.offset
				return mem, i == t.Vlen()-1, nil
			}
			if !m.targ.NameIs(mem.NameOff, "") {
				continue
			}
			in, _ := m.targ.SkipMods(mem.Type)
			if !in.Kind().IsComposite() {
				return rawbtf.Member{}, false, errors.New("anonymous member of another kind")
			}
			level = append(level, place{in.ID, at.offset + mem.BitOffset})
		}
	}
	return rawbtf.Member{}, false, errImpossible
}

// ciliumMember returns a member. Where the struct has no bitfields of its own,
// a type of fewer bits than it has bytes for makes one.
func ciliumMember(t *rawbtf.Type, i uint32) rawbtf.Member {
	m := t.Member(i)
	if in := t.BTF().Type(m.Type); !t.KindFlag() && in.Kind() == btfenc.KindInt {
		if off, bits := in.IntOffset(), in.IntData()&0xff; off > 0 || bits/8 != in.Size() {
			m.BitOffset += off
			m.BitSize = bits
		}
	}
	return m
}

// pair reads both sides without modifiers and typedefs. It reports whether the pair was met before.
func (m *ciliumMatcher) pair(local, targ btfenc.TypeID) (l, t rawbtf.Type, known bool, err error) {
	l, ok1 := m.local.SkipMods(local)
	t, ok2 := m.targ.SkipMods(targ)
	if m.budget--; !ok1 || !ok2 || m.budget < 0 {
		return l, t, false, errNesting
	}
	return l, t, m.seen[typePair{l.ID, t.ID}], nil
}

func (m *ciliumMatcher) meet(l, t rawbtf.Type) {
	if m.seen == nil {
		m.seen = make(map[typePair]bool)
	}
	m.seen[typePair{l.ID, t.ID}] = true
}

// ciliumDepth bounds recursion, so that hostile BTF cannot use up the stack.
const ciliumDepth = 1 << 12

// compatible compares two types as wholes (coreAreTypesCompatible).
func (m *ciliumMatcher) compatible(local, targ btfenc.TypeID, depth int) error {
	l, t, known, err := m.pair(local, targ)
	switch {
	case err != nil:
		return err
	case depth > ciliumDepth:
		return errNesting
	case !l.Kind().Compat(t.Kind()):
		return errImpossible
	case known:
		return nil
	}
	m.meet(l, t)
	switch k := l.Kind(); k {
	case btfenc.KindVoid, btfenc.KindStruct, btfenc.KindUnion, btfenc.KindEnum, btfenc.KindEnum64, btfenc.KindFwd, btfenc.KindInt:
		return nil
	case btfenc.KindPtr:
		return m.compatible(l.Ref(), t.Ref(), depth+1)
	case btfenc.KindArray:
		a, b := l.Array(), t.Array()
		if err := m.compatible(a.Index, b.Index, depth+1); err != nil {
			return err
		}
		return m.compatible(a.Elem, b.Elem, depth+1)
	case btfenc.KindFuncProto:
		if err := m.compatible(l.Ref(), t.Ref(), depth+1); err != nil {
			return err
		}
		if l.Vlen() != t.Vlen() {
			return errImpossible
		}
		for i := range l.Vlen() {
			if err := m.compatible(l.Param(i).Type, t.Param(i).Type, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return errUnsupported
}

// matches compares two types by their members (coreTypesMatch).
func (m *ciliumMatcher) matches(local, targ btfenc.TypeID, depth int) error {
	l, t, known, err := m.pair(local, targ)
	switch {
	case err != nil:
		return err
	case depth > ciliumDepth:
		return errNesting
	case !sameEssential(l.Name(), t.Name()), !l.Kind().Compat(t.Kind()):
		return errImpossible
	case known:
		return nil
	}
	m.meet(l, t)
	differ := func(equal bool) error {
		if !equal {
			return errImpossible
		}
		return nil
	}
	switch l.Kind() {
	case btfenc.KindVoid:
		return nil
	case btfenc.KindFwd:
		return differ(l.KindFlag() == t.KindFlag())
	case btfenc.KindEnum, btfenc.KindEnum64:
		return m.enums(l, t)
	case btfenc.KindStruct, btfenc.KindUnion:
		return m.members(l, t, depth)
	case btfenc.KindInt:
		return differ(l.Size() == t.Size() && (l.IntEncoding() == btfenc.IntSigned) == (t.IntEncoding() == btfenc.IntSigned))
	case btfenc.KindPtr:
		lp, ok1 := m.local.SkipMods(l.Ref())
		tp, ok2 := m.targ.SkipMods(t.Ref())
		if ok1 && ok2 && (forwards(lp, tp) || forwards(tp, lp)) {
			return nil
		}
		return m.matches(l.Ref(), t.Ref(), depth+1)
	case btfenc.KindArray:
		a, b := l.Array(), t.Array()
		if a.Nelems != b.Nelems {
			return errImpossible
		}
		return m.matches(a.Elem, b.Elem, depth+1)
	case btfenc.KindFuncProto:
		if l.Vlen() != t.Vlen() {
			return errImpossible
		}
		for i := range l.Vlen() {
			if err := m.matches(l.Param(i).Type, t.Param(i).Type, depth+1); err != nil {
				return err
			}
		}
		return m.matches(l.Ref(), t.Ref(), depth+1)
	}
	return errUnsupported
}

func (m *ciliumMatcher) members(l, t rawbtf.Type, depth int) error {
	if l.Vlen() > t.Vlen() {
		return errImpossible
	}
	if m.budget -= int(t.Vlen()); m.budget < 0 {
		return errNesting
	}
	last := make(map[string]uint32, t.Vlen())
	for j := range t.Vlen() {
		last[string(m.targ.Name(t.Member(j).NameOff))] = j
	}
	for i := range l.Vlen() {
		lm := l.Member(i)
		j, ok := last[string(m.local.Name(lm.NameOff))]
		if !ok {
			return errImpossible
		}
		if err := m.matches(lm.Type, t.Member(j).Type, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (m *ciliumMatcher) enums(l, t rawbtf.Type) error {
	if l.Size() != t.Size() || l.Vlen() > t.Vlen() {
		return errImpossible
	}
	for i := range l.Vlen() {
		found := false
		for j := uint32(0); j < t.Vlen() && !found; j++ {
			if m.budget--; m.budget < 0 {
				return errNesting
			}
			found = sameEssential(m.local.Name(l.Enumerator(i).NameOff), m.targ.Name(t.Enumerator(j).NameOff))
		}
		if !found {
			return errImpossible
		}
	}
	return nil
}

// ciliumSize is the size of a type in bytes, where pointers have 8 (Sizeof in
// btf/types.go).
func ciliumSize(b *rawbtf.BTF, id btfenc.TypeID) (uint64, error) {
	n := uint64(1)
	for range limits.Modifiers {
		t, ok := b.SkipMods(id)
		size := uint64(0)
		switch k := t.Kind(); {
		case !ok:
			return 0, errNesting
		case k == btfenc.KindArray:
			a := t.Array()
			if n *= uint64(a.Nelems); n > math.MaxUint32 {
				return 0, rawbtf.ErrTooBig
			}
			id = a.Elem
			continue
		case k == btfenc.KindPtr:
			size = 8
		case k == btfenc.KindVoid:
		case k.Shape().Third == btfenc.Size:
			size = uint64(t.Size())
		default:
			return 0, rawbtf.ErrNoSize
		}
		if size *= n; size > math.MaxInt32 {
			return 0, rawbtf.ErrTooBig
		}
		return size, nil
	}
	return 0, errNesting
}

// ciliumAlign is the alignment of a bitfield's type (alignof in btf/types.go).
func ciliumAlign(b *rawbtf.BTF, id btfenc.TypeID) (uint32, error) {
	for range limits.Modifiers {
		t, ok := b.SkipMods(id)
		switch k := t.Kind(); {
		case ok && k == btfenc.KindArray:
			id = t.Array().Elem
			continue
		case ok && (k.IsAnyEnum() || k == btfenc.KindInt) && t.Size() > 0 && t.Size()&(t.Size()-1) == 0:
			return t.Size(), nil
		}
		break
	}
	return 0, errors.New("no alignment")
}
