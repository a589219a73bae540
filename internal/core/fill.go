// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"math/bits"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Filler fills tables. It has the memory that matching takes. The zero value is ready
// for use. It is not safe for concurrent use.
type Filler struct {
	tb     *Table
	ids    [][]btf.TypeID
	m      matcher
	cilium ciliumMatcher
	found  Found
}

// Fill matches every question of the set with every candidate in the kernel,
// and calls found, if not nil, for each match. The table refers to both set and
// kernel until the next Fill, which reuses its memory. After an error, a
// [limits.Exceeded] or the context's, it must be filled again before use.
func (f *Filler) Fill(ctx context.Context, tb *Table, s *Set, k *Target, found func(*Found)) error {
	if err := f.begin(ctx, tb, s, k); err != nil {
		return err
	}
	for q := range s.questions {
		if err := f.row(q, found); err != nil {
			return err
		}
	}
	return nil
}

// begin finds the candidates, and makes room for their outcomes.
func (f *Filler) begin(ctx context.Context, tb *Table, s *Set, k *Target) error {
	tb.set, tb.kernel = s, k
	var err error
	if tb.cands, f.ids, err = k.find(ctx, s, tb.cands, f.ids); err != nil {
		return err
	}
	tb.values = tb.values[:0]
	if err := tb.check(); err != nil {
		return err
	}
	if len(s.questions) > cap(tb.rows) {
		tb.rows = make([]outcomes, len(s.questions))
	}
	tb.rows = tb.rows[:len(s.questions)]
	meter := comparisons(ctx)
	f.tb, f.m.meter, f.cilium.meter, f.cilium.deep = tb, meter, meter, false
	return nil
}

// row matches a question with every candidate.
func (f *Filler) row(question int, found func(*Found)) error {
	q, all, r := &f.tb.set.questions[question], f.tb.candidates(question), &f.tb.rows[question]
	r.resize(len(all))
	r.visible = visible(all, func(c candidate) bool { return c.libbpf(q.rootKind) })
	aya := visible(all, func(c candidate) bool { return c.aya(q.rootKind) })
	for i := range all {
		c := f.outcome(q, all[i], i, i < r.visible, i < aya, found)
		r.libbpf[i], r.cilium[i], r.aya[i] = c.libbpf, c.cilium, c.aya
		if f.cilium.deep {
			return &limits.Exceeded{Max: limits.Pairs, What: "pairs of types in one match"}
		}
		if !f.m.meter.Step(1) {
			return f.m.meter.Err()
		}
	}
	return nil
}

// check returns an error if there are too many candidates.
func (tb *Table) check() error {
	outcomes, decisions := 0, 0
	for i := range tb.set.questions {
		outcomes += len(tb.candidates(i))
	}
	for i := range tb.set.objects {
		for _, r := range tb.set.objects[i].roots {
			if r.question >= 0 {
				decisions += len(r.records) * len(tb.candidates(r.question))
			}
		}
	}
	switch {
	case outcomes > limits.Outcomes:
		return &limits.Exceeded{Max: limits.Outcomes, What: "matches to try"}
	case decisions > limits.Decisions:
		return &limits.Exceeded{Max: limits.Decisions, What: "candidates to decide between"}
	}
	return nil
}

// outcome matches the candidate at a place of a row as each loader does. libbpf and aya say whether it is visible to them.
func (f *Filler) outcome(q *question, c candidate, place int, libbpf, aya bool, found func(*Found)) (out outcome) {
	m, tb := &f.m, f.tb
	m.targ, m.needs, m.floats = &c.view.BTF, m.needs[:0], false
	n, at := bits.OnesCount16(q.kinds), len(tb.values)
	tb.values = append(tb.values, make([]uint64, 2*n)...)
	hidden := !libbpf && c.libbpf(q.rootKind)
	libbpf, aya = libbpf && c.libbpf(q.rootKind), aya && c.aya(q.rootKind) && q.spec.kind != relo.TypeMatches
	if libbpf || aya {
		ok, err := m.specMatch(q.spec, c.id)
		out.libbpf.matches, out.libbpf.fails = ok && libbpf, err != nil && libbpf
		out.aya.fails = out.libbpf.fails
		switch {
		case aya && q.spec.kind.IsEnumval():
			out.aya.matches = m.aya != nil
		case aya && !ok && m.float:
			m.floats = true
			out.aya.matches, _ = m.specMatch(q.spec, c.id)
		case aya:
			out.aya.matches = ok && m.ayaTakes(q.spec)
		}
		if out.libbpf.matches || out.aya.matches {
			f.take(q, &out, at)
		}
		if !ok && !out.aya.matches && err == nil {
			m.needs = m.needs[:0]
		}
	}
	if c.by&btf.Cilium != 0 {
		out.cilium = f.fixups(q, c, place, at+n)
	}
	if !out.matters() {
		tb.values = tb.values[:at]
		return out
	}
	// A loader that fails on a candidate must fail on its minimized form, too.
	if found != nil {
		f.found = Found{BTF: m.targ, Type: c.id, Needs: m.needs, Hidden: hidden, kinds: q.kinds}
		found(&f.found)
	}
	return out
}

// fixups returns cilium/ebpf's outcome, whose target values go to a place of the table's values.
func (f *Filler) fixups(q *question, c candidate, place, at int) ciliumOutcome {
	out := ciliumOutcome{at: uint32(at)}
	for i, k := range q.each() {
		fx := f.cilium.fixup(q.spec, k, c, place)
		switch {
		case fx.err != nil:
			out.fails |= 1 << k
		case !fx.failed(k):
			out.matches |= 1 << k
		}
		f.tb.values[at+i] = fx.target
	}
	if out.matches|out.fails != 0 && !slices.Equal(f.m.needs, f.cilium.needs) {
		f.m.needs = append(f.m.needs, f.cilium.needs...)
	}
	return out
}

// take stores the match in f.m, whose values go to a place of the table's values.
func (f *Filler) take(q *question, out *outcome, at int) {
	s := &f.m.out
	m, l := match{bitOff: s.bitOff, at: uint32(at)}, load{}
	for i, k := range q.each() {
		if k.IsEnumval() && len(s.acc) == 0 { // only aya has found one
			continue
		}
		v, err := s.calc(k)
		if err != nil {
			m.bad |= 1 << k
		}
		if v.load.ok {
			l = v.load
		}
		f.tb.values[at+i] = v.val
	}
	if out.libbpf.matches {
		out.libbpf.match, out.libbpf.load = m, l
	}
	if !out.aya.matches {
		return
	}
	out.aya.match = m
	if q.hasKind(relo.ByteOffset) {
		out.aya.field = s.field(l)
	}
	if q.hasKind(relo.EnumvalValue) {
		out.aya.enumerator = f.m.aya.Value
	}
}
