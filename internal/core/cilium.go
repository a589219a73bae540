// SPDX-License-Identifier: Apache-2.0

package core

import (
	"errors"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relo"
)

// How cilium/ebpf resolves one relocation on one candidate (coreCalculateFixup
// in btf/core.go, v0.22).

// ciliumMatcher matches specs with types of a kernel as cilium/ebpf does. It is
// scratch memory: not for concurrent use.
type ciliumMatcher struct {
	ciliumFinder
	meter *limits.Meter // shared by all matches of a table
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
