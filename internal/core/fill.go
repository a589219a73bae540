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
	meter := comparisons(ctx)
	tb.set, tb.kernel = s, k
	var err error
	if tb.cands, f.ids, err = k.find(ctx, s, tb.cands, f.ids); err != nil {
		return err
	}
	tb.values = tb.values[:0]
	if err := tb.check(); err != nil {
		return err
	}
	if cap(tb.rows) < len(s.questions) {
		tb.rows = make([][]outcome, len(s.questions))
	}
	tb.rows, tb.libbpf = tb.rows[:len(s.questions)], tb.libbpf[:0]
	f.tb, f.m.meter, f.cilium.meter, f.cilium.deep = tb, meter, meter, false
	for i := range s.questions {
		q := &s.questions[i]
		all := tb.cands[q.name]
		row := slices.Grow(tb.rows[i][:0], len(all))[:len(all)]
		libbpf := visible(all, func(c candidate) bool { return c.libbpf(q.rootKind) })
		aya := visible(all, func(c candidate) bool { return c.aya(q.rootKind) })
		tb.libbpf = append(tb.libbpf, libbpf)
		for j := range row {
			row[j] = f.outcome(q, all[j], j, j < libbpf, j < aya, found)
			if f.cilium.deep {
				return &limits.Exceeded{Max: limits.Pairs, What: "pairs of types in one match"}
			}
			if !meter.Step(1) {
				return meter.Err()
			}
		}
		tb.rows[i] = row
	}
	return nil
}

// check returns an error if there are too many candidates.
func (tb *Table) check() error {
	outcomes, decisions := 0, 0
	for i := range tb.set.questions {
		outcomes += len(tb.cands[tb.set.questions[i].name])
	}
	for i := range tb.set.objects {
		for _, r := range tb.set.objects[i].roots {
			if r.question >= 0 {
				decisions += len(r.records) * len(tb.cands[tb.set.questions[r.question].name])
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
	n := bits.OnesCount16(q.kinds)
	out.at = uint32(len(tb.values))
	tb.values = append(tb.values, make([]uint64, 2*n)...)
	hidden := !libbpf && c.libbpf(q.rootKind)
	libbpf, aya = libbpf && c.libbpf(q.rootKind), aya && c.aya(q.rootKind) && q.spec.kind != relo.TypeMatches
	if libbpf || aya {
		ok, err := m.specMatch(q.spec, c.id)
		out.libbpf, out.err = ok && libbpf, err != nil && libbpf
		switch {
		case aya && q.spec.kind.IsEnumval():
			out.aya = m.aya != nil
		case aya && !ok && m.float:
			m.floats = true
			out.aya, _ = m.specMatch(q.spec, c.id)
		case aya:
			out.aya = ok && m.ayaTakes(q.spec)
		}
		if ok || out.aya {
			f.take(q, &out)
		} else if err == nil {
			m.needs = m.needs[:0]
		}
	}
	if c.by&btf.Cilium != 0 {
		f.fixups(q, c, place, &out, tb.values[int(out.at)+n:])
	}
	if !out.matters() {
		tb.values = tb.values[:out.at]
		return out
	}
	// A loader that fails on a candidate must fail on its minimized form, too.
	if found != nil {
		f.found = Found{BTF: m.targ, Type: c.id, Needs: m.needs, Hidden: hidden, kinds: q.kinds}
		found(&f.found)
	}
	return out
}

// fixups notes the fixup of each kind of the question, whose target values go to values.
func (f *Filler) fixups(q *question, c candidate, place int, out *outcome, values []uint64) {
	for i, k := range q.each() {
		fx := f.cilium.fixup(q.spec, k, c, place)
		switch {
		case fx.err != nil:
			out.fatal |= 1 << k
		case !fx.failed(k):
			out.cilium |= 1 << k
		}
		values[i] = fx.target
	}
	if out.cilium|out.fatal != 0 && !slices.Equal(f.m.needs, f.cilium.needs) {
		f.m.needs = append(f.m.needs, f.cilium.needs...)
	}
}

// take stores the values of the match in f.m.
func (f *Filler) take(q *question, c *outcome) {
	s := &f.m.out
	c.bitOff = s.bitOff
	for i, k := range q.each() {
		if k.IsEnumval() && len(s.acc) == 0 { // only aya has found one
			continue
		}
		v, err := s.calc(k)
		if err != nil {
			c.bad |= 1 << k
		}
		if v.load.ok {
			c.load = v.load
		}
		f.tb.values[int(c.at)+i] = v.val
	}
	if q.hasKind(relo.ByteOffset) {
		c.field = s.field(c.load)
	}
	if c.aya && q.hasKind(relo.EnumvalValue) {
		c.ayaValue = f.m.aya.Value
	}
}
