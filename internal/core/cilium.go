// SPDX-License-Identifier: Apache-2.0

package core

import (
	"errors"
	"math"
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

// sameEssential compares names; an empty one goes with any.
func sameEssential(a, b []byte) bool {
	return len(a) == 0 || len(b) == 0 || string(ciliumEssential(a)) == string(ciliumEssential(b))
}

// ciliumEssential returns a name without its flavor.
func ciliumEssential[S string | []byte](name S) S { return btf.EssentialFor(btf.Cilium, name) }
