// SPDX-License-Identifier: Apache-2.0

package core

import (
	"iter"
	"math"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// How aya decides (aya-obj's src/btf/relocation.rs). It decides an object at a time: one
// relocation that fails ends the load. aya follows libbpf's first version and
// differs in these points:
//
//   - Candidates have exactly the kind of the local type, and none is ruled out
//     by earlier relocations. The first match counts; all others must have the
//     same offset and the same value.
//   - Of enums and forward declarations an empty name matches only another.
//   - An array without elements is flexible as the last member of a struct, not
//     of a union. By mistake it compares the number of the member with the index
//     into a local array, and accepts only equal ones.
//   - A size or type ID that no candidate has fails; libbpf writes 0.
//   - A load whose width cannot be changed fails; libbpf poisons it. Its width is
//     that of the whole field. The operand is not compared with the local value.
//   - type_matches is an unknown kind.
//   - It reads no BTF of modules (Btf::from_sys_fs).
//
// Names are cut at the first ___. A relocation whose local side libbpf refuses,
// such as one of an anonymous type, is not resolved.

// AyaDecision is aya's decision on a record. Ambiguous and Error end the load of
// the object.
type AyaDecision struct {
	Result relo.Result
	New    uint64 // new value; valid if Result.OK

	load    load
	id      bool  // New is the ID of a type
	modules bool  // only modules have a type that matches
	patch   error // why the instruction is refused
}

// Same reports whether two decisions do the same to the instruction, or both end the load. On minimized BTF o, aya finds types
// of modules, which is not a difference.
func (d *AyaDecision) Same(o *AyaDecision) bool { return d.modules || d.effect() == o.effect() }

func (d *AyaDecision) effect() effect { return effectOf(d.Result, d.New, d.load, d.id) }

func (d *AyaDecision) String() string {
	if d.Result == relo.Resolved && !d.id {
		return d.effect().String()
	}
	return d.Result.String()
}

// AyaDecider decides as aya does, given the outcomes of a table. It remembers what it
// explains, and is not safe for concurrent use.
type AyaDecider struct {
	tb      *Table
	explain explainer
	object  int            // the last one that Decision was asked about
	made    []*AyaDecision // its decisions, indexed by site; nil if not yet made
}

// Aya returns a decider for the current outcomes.
func (tb *Table) Aya() *AyaDecider { return &AyaDecider{tb: tb, explain: explainer{tb: tb}} }

// Decision returns aya's decision on a record of object number i. Equal records share one.
func (y *AyaDecider) Decision(i int, record int) AyaDecision {
	m := &y.tb.set.objects[i]
	if y.made == nil || y.object != i {
		y.object, y.made = i, make([]*AyaDecision, len(m.sites))
	}
	n := m.siteOf[record]
	if y.made[n] == nil {
		d := y.decide(m, n)
		y.made[n] = &d
	}
	return *y.made[n]
}

// Decisions returns aya's decision on every record of object number i of the
// set, in the object's order. Equal records share one.
func (y *AyaDecider) Decisions(i int) iter.Seq2[*Record, *Decision] {
	return func(yield func(*Record, *Decision) bool) {
		m := &y.tb.set.objects[i]
		steps := make([]*Decision, len(m.sites))
		for rec := range m.records {
			n := m.siteOf[rec]
			if steps[n] == nil {
				a, spec := y.decide(m, n), m.sites[n].spec
				steps[n] = &Decision{
					Result: a.Result, New: a.New,
					resolution: &resolution{
						tb: y.tb, spec: m.specs[spec], question: -1, old: m.local[spec].value,
						reason: y.reason(m, n, &a), target: -1, other: -1,
					},
				}
			}
			if !yield(&m.records[rec], steps[n]) {
				return
			}
		}
	}
}

// reason says why aya does not resolve a site as d has it; it is zero if it does.
func (y *AyaDecider) reason(m *setObject, n int32, d *AyaDecision) relo.Reason {
	st := &m.sites[n]
	s, q, local := m.specs[st.spec], m.question[st.spec], &m.local[st.spec]
	invalid := relo.Reason{Code: relo.InvalidRelocation}
	switch {
	case d.Result == relo.Resolved:
		return relo.Reason{}
	case d.patch != nil:
		r := ReasonOf(relo.UnpatchableInsn, d.patch)
		if r.Cause == relo.CauseFieldSize || r.Cause == relo.CauseBitfield {
			r.Code = relo.LoadNotResizable
		}
		return r
	case local.err != nil:
		return ReasonOf(invalid.Code, local.err)
	case s.kind == relo.TypeMatches:
		invalid.Cause = relo.CauseRelocation
		return invalid
	case s.ayaRefuses():
		invalid.Cause = relo.CauseFlexible
		return invalid
	}
	tb := y.tb
	explained := func(i int) relo.Reason {
		c := y.explain.candidate(s, q, int32(i))
		r := ReasonOf(invalid.Code, c.err)
		r.TargetNumber = uint64(c.TypeID)
		return r
	}
	first, candidates := -1, 0
	row := tb.rows[q].aya
	for i, cand := range tb.candidates(q) {
		if !cand.aya(tb.set.questions[q].rootKind) || cand.view.module != "" {
			continue
		}
		candidates++
		switch {
		case row[i].fails && d.Result != relo.Ambiguous:
			return explained(i)
		case !row[i].matches:
		case first < 0:
			first = i
		case row[i].bitOff != row[first].bitOff:
			return relo.Reason{Code: relo.AmbiguousOffset, LocalNumber: uint64(row[i].bitOff), TargetNumber: uint64(row[first].bitOff)}
		}
	}
	switch {
	case d.Result == relo.Ambiguous:
		return relo.Reason{Code: relo.AmbiguousValue}
	case first >= 0:
		return explained(first) // the first match has no such value
	case candidates == 0:
		return relo.Reason{Code: relo.NoCandidate}
	}
	return relo.Reason{Code: missing(s.kind)}
}

// decide decides a record of a site.
func (y *AyaDecider) decide(m *setObject, n int32) AyaDecision {
	st := &m.sites[n]
	s, q, local := m.specs[st.spec], m.question[st.spec], &m.local[st.spec]
	switch {
	case local.err != nil || s.ayaRefuses():
		return AyaDecision{Result: relo.Error}
	case q < 0: // local_type_id
		return st.insn.aya(s, AyaDecision{New: local.val})
	}
	d, found := y.choose(s, q)
	switch {
	case d.Result == relo.Error || d.Result == relo.Ambiguous:
		return d
	case found:
	case s.kind.IsExistence():
		d.Result = relo.Absent
	case s.kind.IsType():
		d.Result = relo.Error
		return d
	default:
		d.Result = relo.Poisoned
		return d
	}
	end := st.insn.aya(s, d)
	end.modules = d.modules && !found
	return end
}

// choose decides by the candidates of a question, without the instruction. It reports whether one matches that aya reads.
func (y *AyaDecider) choose(s *spec, q int) (d AyaDecision, found bool) {
	d.id = s.kind == relo.TargetTypeID
	kind, row := y.tb.set.questions[q].rootKind, y.tb.rows[q].aya
	bad := uint16(1) << s.kind
	var first *ayaOutcome
	for i, cand := range y.tb.candidates(q) {
		c := &row[i]
		switch {
		case !cand.aya(kind):
		case cand.view.module != "":
			d.modules = d.modules || c.matches || c.fails
		case c.fails:
			return AyaDecision{Result: relo.Error}, false
		case !c.matches:
		case first == nil:
			first = c
			if c.bad&bad != 0 {
				d.Result = relo.Poisoned
			} else {
				d.New = y.value(s, q, c)
			}
			if s.kind == relo.ByteOffset {
				d.load = c.field
			}
		case c.bitOff != first.bitOff || (c.bad|first.bad)&bad == 0 && y.value(s, q, c) != d.New:
			return AyaDecision{Result: relo.Ambiguous}, false
		}
	}
	return d, first != nil
}

// value returns the new value by a candidate that matches.
func (y *AyaDecider) value(s *spec, q int, c *ayaOutcome) uint64 {
	switch s.kind {
	case relo.EnumvalValue:
		return c.enumerator
	case relo.EnumvalExists:
		return 1
	}
	return y.tb.values[int(c.at)+y.tb.set.questions[q].number(s.kind)]
}

// aya says what aya does to the instruction.
func (in insn) aya(s *spec, d AyaDecision) AyaDecision {
	if err := in.ayaPatch(s, &d); err != nil {
		return AyaDecision{Result: relo.Error, patch: err}
	}
	return d
}

// ayaPatch returns why aya does not accept the instruction for a decision.
func (in insn) ayaPatch(s *spec, d *AyaDecision) error {
	class := in.code & 7
	switch {
	case !in.ok: // there is none
		return fault{Cause: relo.CauseInsnClass}
	case d.Result == relo.Poisoned, class == classLD:
	case class == classALU || class == classALU64:
		if in.code&srcX != 0 {
			return errNoImmediate
		}
	case class != classLDX && class != classST && class != classSTX:
		return fault{Cause: relo.CauseInsnClass, LocalNumber: uint64(class)}
	case d.New > math.MaxInt16:
		return fault{Cause: relo.CauseOffset, TargetNumber: d.New}
	default:
		var l load
		if s.kind == relo.ByteOffset {
			l = s.field(load{})
		}
		t := d.load
		if l.size == t.size {
			break
		}
		unsigned := l.kind == btf.KindInt && t.kind == btf.KindInt && (l.enc|t.enc)&btf.IntSigned == 0
		pointers := l.kind == btf.KindPtr && t.kind == btf.KindPtr
		loadable := t.size == 1 || t.size == 2 || t.size == 4 || t.size == 8
		if !l.ok || !t.ok || !unsigned && !pointers || !loadable {
			f := fault{Cause: relo.CauseFieldSize, LocalNumber: uint64(l.size), TargetNumber: uint64(t.size)}
			if l.ok != t.ok {
				f.Cause = relo.CauseBitfield
			}
			return f
		}
	}
	return nil
}
