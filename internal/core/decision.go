// SPDX-License-Identifier: Apache-2.0

package core

import (
	"iter"
	"slices"

	"github.com/btfgen/btfgen/pkg/relo"
)

// Decision is libbpf's decision on a record, unless it is an [AyaDecider]'s. Earlier records of the same root may
// have ruled candidates out; all matches among the others must agree, and their
// value must fit the instruction (bpf_core_calc_relo_insn and
// bpf_core_patch_insn). It is immutable, safe for concurrent use, and valid until the next Fill of its table.
type Decision struct {
	Result relo.Result
	New    uint64 // value on the target side, if Result.OK

	resolution *resolution
	patch      error // why libbpf poisons or refuses the instruction
}

// resolution is the part of a decision that does not depend on the instruction. It is immutable once a decision has it.
type resolution struct {
	tb       *Table
	spec     *spec
	question int // -1 if it does not depend on the kernel
	result   relo.Result
	old, new value
	reason   relo.Reason // why it is not resolved
	err      error       // error of the local side
	left     []int32     // candidates that were left, as places in the row, up to one that libbpf gives up on
	target   int32       // the first that matches, or -1
	other    int32       // one that disagrees with it, or that libbpf gives up on, or -1
}

// LibbpfDecider decides as libbpf does, given the outcomes of a table. It remembers what
// it explains, and is not safe for concurrent use. Its decisions are.
type LibbpfDecider struct {
	tb      *Table
	explain explainer
}

// Libbpf returns a decider for the current outcomes.
func (tb *Table) Libbpf() *LibbpfDecider {
	return &LibbpfDecider{tb: tb, explain: explainer{tb: tb}}
}

// Decisions returns the decision on every record of object number i of the
// set, in the object's order. Equal records with the same remaining candidates
// share one.
func (l *LibbpfDecider) Decisions(i int) iter.Seq2[*Record, *Decision] {
	return func(yield func(*Record, *Decision) bool) {
		m := &l.tb.set.objects[i]
		w := newRecordDecider(l, m)
		for rec := range m.records {
			if !yield(&m.records[rec], w.decide(m.siteOf[rec])) {
				return
			}
		}
	}
}

// recordDecider makes the decisions on the records of one object, in order.
type recordDecider struct {
	*LibbpfDecider
	m    *setObject
	left [][]int32 // remaining candidates of each root, nil before its first record

	// Decisions with the remaining candidates, nil if not yet made.
	resolutions []*resolution // indexed by spec
	decisions   []*Decision   // indexed by site
}

func newRecordDecider(l *LibbpfDecider, m *setObject) *recordDecider {
	return &recordDecider{
		LibbpfDecider: l, m: m, left: make([][]int32, len(m.roots)),
		resolutions: make([]*resolution, len(m.specs)), decisions: make([]*Decision, len(m.sites)),
	}
}

// candidates returns the remaining candidates of a root.
func (w *recordDecider) candidates(root int32) []int32 {
	n := w.m.roots[root].question
	if w.left[root] == nil && n >= 0 {
		kind, seen := w.tb.set.questions[n].rootKind, w.tb.rows[n].visible
		left := make([]int32, 0, seen)
		for i, c := range w.tb.candidates(n)[:seen] {
			if c.libbpf(kind) {
				left = append(left, int32(i))
			}
		}
		w.left[root] = left
	}
	return w.left[root]
}

// narrow keeps the matches among the candidates of a root. It drops the decisions on
// the root, which other candidates led to.
func (w *recordDecider) narrow(root int32, row []libbpfOutcome, matched int) {
	left := make([]int32, 0, matched) // earlier decisions refer to w.left
	for _, i := range w.left[root] {
		if row[i].matches {
			left = append(left, i)
		}
	}
	w.left[root] = left
	for _, rec := range w.m.roots[root].records {
		st := w.m.siteOf[rec]
		w.decisions[st] = nil
		w.resolutions[w.m.sites[st].spec] = nil
	}
}

// decide decides a record of a site.
func (w *recordDecider) decide(n int32) *Decision {
	if d := w.decisions[n]; d != nil {
		return d
	}
	st := &w.m.sites[n]
	mt, narrowed := w.resolutions[st.spec], false
	if mt == nil {
		mt, narrowed = w.resolve(st.spec)
	}
	d := &Decision{Result: mt.result, resolution: mt}
	if !narrowed { // else later records of the site have fewer candidates
		w.resolutions[st.spec], w.decisions[n] = mt, d
	}
	if !d.Result.OK() {
		return d
	}
	poison, err := st.insn.patch(mt.old, mt.new)
	switch {
	case err != nil:
		d.Result, d.patch = relo.Error, err
	case poison != nil:
		d.Result, d.patch = relo.Poisoned, poison
	default:
		d.New = mt.new.val
	}
	return d
}

// resolve makes the resolution of a spec with its reason. It reports whether the spec ruled candidates out.
func (w *recordDecider) resolve(n int32) (mt *resolution, narrowed bool) {
	mt, narrowed = w.ruleOut(n)
	mt.reason = mt.explain(&w.explain)
	return mt, narrowed
}

// ruleOut rules out the remaining candidates that do not match, unless the load
// fails or none matches (bpf_core_calc_relo_insn). It reports whether there are some.
func (w *recordDecider) ruleOut(n int32) (mt *resolution, narrowed bool) {
	s, q := w.m.specs[n], w.m.question[n]
	local := &w.m.local[n]
	mt = &resolution{tb: w.tb, spec: s, question: q, old: local.value, err: local.err, target: -1, other: -1}
	switch {
	case mt.err != nil:
		mt.result = relo.Error
		return mt, false
	case q < 0: // local_type_id
		mt.new = mt.old
		return mt, false
	}
	row := w.tb.rows[q].libbpf
	mt.left = w.candidates(w.m.rootOf[n])
	matched := 0
	for k, i := range mt.left {
		c := &row[i]
		if c.fails || c.matches && c.bad&(1<<s.kind) != 0 {
			mt.left = mt.left[:k]
			if mt.result != relo.Ambiguous {
				mt.result, mt.other = relo.Error, i
			}
			return mt, false
		}
		if !c.matches {
			continue
		}
		v := w.tb.value(q, i, s.kind)
		switch {
		case mt.target < 0:
			mt.target, mt.new = i, v
		case mt.result != relo.Ambiguous && (c.bitOff != row[mt.target].bitOff || v.val != mt.new.val):
			mt.result, mt.other = relo.Ambiguous, i
		}
		matched++
	}
	switch {
	case mt.result == relo.Ambiguous:
	case matched == 0 && (s.kind.IsExistence() || s.kind.IsType()):
		mt.result = relo.Absent
	case matched == 0:
		mt.result = relo.Poisoned
	case matched < len(mt.left):
		w.narrow(w.m.rootOf[n], row, matched)
		return mt, true
	}
	return mt, false
}

// Resized returns the new width of a load or store in bytes, or 0 if the width stays.
func (d *Decision) Resized() uint32 {
	if d.resolution.old.load.size == d.resolution.new.load.size {
		return 0
	}
	return d.resolution.new.load.size
}

// Unresizable reports whether the instruction is poisoned because a load or store
// cannot get the width of the kernel's field. cilium/ebpf does not change widths.
func (d *Decision) Unresizable() bool { return d.Result == relo.Poisoned && d.patch != nil }

// Bitfield reports whether the local side has a whole field and the kernel a bitfield. The offset is then resolved to that of the bitfield's
// bytes.
func (d *Decision) Bitfield() bool {
	m := d.resolution
	return m.spec.kind == relo.ByteOffset && m.result == relo.Resolved && d.Result.OK() && m.old.load.ok && !m.new.load.ok
}

// Old returns the value on the local side.
func (d *Decision) Old() uint64 { return d.resolution.old.val }

// Reason says why a relocation is not resolved; it is zero if it is resolved.
func (d *Decision) Reason() relo.Reason {
	switch {
	case d.patch != nil && d.Result == relo.Poisoned:
		return ReasonOf(relo.LoadNotResizable, d.patch)
	case d.patch != nil:
		return ReasonOf(relo.UnpatchableInsn, d.patch)
	}
	return d.resolution.reason
}

// explain returns the reason for which a relocation is not resolved; it is zero if it is resolved.
func (m *resolution) explain(x *explainer) relo.Reason {
	switch {
	case m.err != nil:
		return ReasonOf(relo.InvalidRelocation, m.err)
	case m.result == relo.Resolved:
		return relo.Reason{}
	case m.result == relo.Ambiguous:
		row := m.tb.rows[m.question].libbpf
		a, b := &row[m.target], &row[m.other]
		if a.bitOff != b.bitOff {
			return relo.Reason{Code: relo.AmbiguousOffset, LocalNumber: uint64(b.bitOff), TargetNumber: uint64(a.bitOff)}
		}
		other := m.tb.value(m.question, m.other, m.spec.kind).val
		return relo.Reason{Code: relo.AmbiguousValue, LocalNumber: other, TargetNumber: m.new.val}
	case m.result == relo.Error:
		c := x.candidate(m.spec, m.question, m.other)
		r := ReasonOf(relo.InvalidRelocation, c.err)
		r.TargetNumber = uint64(c.TypeID)
		return r
	case len(m.left) == 0:
		return relo.Reason{Code: relo.NoCandidate}
	}
	r := relo.Reason{Code: missing(m.spec.kind)}
	if r.Code == relo.FieldMissing {
		m.differs(x, &r)
	}
	return r
}

// fieldCauses are the causes for which a field does not match although a candidate has it.
var fieldCauses = map[relo.Code]relo.Cause{
	relo.CandidateKind: relo.CauseOtherKind, relo.CandidateMemberName: relo.CauseOtherName, relo.CandidateBitOffset: relo.CauseBitOffset,
	relo.CandidateNotArray: relo.CauseNotArray, relo.CandidateShortArray: relo.CauseShortArray,
}

// differs completes the reason for a missing field if a candidate has it, and it is another one.
func (m *resolution) differs(x *explainer, r *relo.Reason) {
	for _, place := range m.left {
		c := x.candidate(m.spec, m.question, place).Reason
		if c == nil || fieldCauses[c.Code] == "" {
			continue
		}
		r.Cause, r.Local, r.Target = fieldCauses[c.Code], c.Local, c.Target
		r.LocalNumber, r.TargetNumber = c.LocalNumber, c.TargetNumber
		return
	}
}

// missing is what a relocation lacks if candidates exist, but none matches.
func missing(kind relo.Kind) relo.Code {
	switch {
	case kind.IsEnumval():
		return relo.EnumeratorMissing
	case kind.IsType():
		return relo.TypeMismatch
	}
	return relo.FieldMissing
}

// NoCandidate reports whether the decision follows from the lack of a type with
// the name and kind of the record's root.
func (d *Decision) NoCandidate() bool {
	m := d.resolution
	return d.patch == nil && m.err == nil && (m.result == relo.Absent || m.result == relo.Poisoned) && len(m.left) == 0
}

// OrAdded returns the decision of a loader that adds types to the kernel's. added is
// the decision on the added types alone. It counts if only they have the record's root
// and the loader does not fail on them.
func (d *Decision) OrAdded(added *Decision) *Decision {
	if d.NoCandidate() && !added.NoCandidate() && added.Result <= relo.Poisoned {
		return added
	}
	return d
}

// Modules returns the modules that have the type, none if vmlinux has it. One of
// them is enough.
func (d *Decision) Modules() (names []string) {
	m := d.resolution
	if m.target < 0 || m.result != relo.Resolved {
		return nil
	}
	return m.modules()
}

// Disagreeing returns the modules that have the type of an ambiguous decision, if only modules
// have it. With one of them loaded, the decision is not ambiguous, unless that has several
// such types.
func (d *Decision) Disagreeing() []string {
	if d.resolution.target < 0 || d.resolution.result != relo.Ambiguous {
		return nil
	}
	if names := d.resolution.modules(); len(names) > 1 {
		return names
	}
	return nil
}

// modules returns the modules with the candidates that match, none if vmlinux has the type.
func (m *resolution) modules() (names []string) {
	all, row := m.tb.candidates(m.question), m.tb.rows[m.question].libbpf
	if all[m.target].view.module == "" { // loaders do not search modules then
		return nil
	}
	for _, i := range m.left {
		if name := all[i].view.module; row[i].matches && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// HiddenIn returns the modules with a type that cilium/ebpf matches, where libbpf makes the instruction invalid because it looks at vmlinux's
// types of the name alone. cilium/ebpf may still take another candidate, see [CiliumDecider.Linked].
func (d *Decision) HiddenIn() (names []string) {
	m := d.resolution
	if m.result != relo.Poisoned || m.question < 0 {
		return nil
	}
	all, row := m.tb.candidates(m.question), &m.tb.rows[m.question]
	for i := row.visible; i < len(all); i++ {
		if name := all[i].view.module; row.cilium[i].matches&(1<<m.spec.kind) != 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
