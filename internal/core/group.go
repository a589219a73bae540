// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// How cilium/ebpf chooses (CORERelocate and coreCalculateFixups in btf/core.go, v0.22):
// candidates are those of vmlinux and then of all modules, by name. It decides
// all relocations of one local type in one linked program together and scores each candidate
// by how many of them fail on it. If two candidates with the best score so far
// disagree, it fails without a look at the rest, so its choice can depend on the
// order of candidates. Of candidates that agree in all values the first counts. A
// relocation that fails agrees with one that resolves to 0.

// choice is cilium/ebpf's decision on a group: a candidate, or the error that ends the load of the program.
type choice struct {
	place int32 // place of the candidate in its row, -1 for none
	err   error
}

// CiliumDecider decides as cilium/ebpf does, with the candidates of a table. It remembers
// what it computes for one object, and is not safe for concurrent use. The zero value needs [CiliumDecider.Reset].
type CiliumDecider struct {
	tb      *Table
	m       ciliumMatcher
	of      *setObject // object of the last program
	fixups  map[fixupKey]fixup
	choices map[*group]choice
	chosen  map[int32]choice // choices for the last program, keyed by root
}

// Cilium returns a decider for the current outcomes. Its comparisons are limited as those of Fill are.
func (tb *Table) Cilium(ctx context.Context) *CiliumDecider {
	d := new(CiliumDecider)
	d.Reset(ctx, tb)
	return d
}

// Reset lets d decide on the current outcomes of a table, with the memory that d has.
func (d *CiliumDecider) Reset(ctx context.Context, tb *Table) {
	if d.fixups == nil {
		d.fixups, d.choices, d.chosen = make(map[fixupKey]fixup), make(map[*group]choice), make(map[int32]choice)
	}
	clear(d.fixups)
	clear(d.choices)
	d.tb, d.m.meter, d.m.deep = tb, comparisons(ctx), false
}

// err returns the error after which decisions mean nothing, or nil.
func (d *CiliumDecider) err() error { return d.m.meter.Err() }

// calculateFixups chooses the candidate of a group (coreCalculateFixups).
func (d *CiliumDecider) calculateFixups(m *setObject, g *group) choice {
	tb := d.tb
	best, bestScore := int32(-1), g.total
	q := m.roots[g.root].question
	for place, cand := range tb.candidates(q) {
		i := int32(place)
		if cand.by&btf.Cilium == 0 {
			continue
		}
		score, agrees := 0, best >= 0
		for n, sp := range g.specs {
			f := d.fixup(m, sp, i)
			if f.err != nil {
				return choice{err: f.err}
			}
			if f.failed(m.specs[sp].kind) {
				score += g.counts[n]
			}
			if agrees {
				o := d.fixup(m, sp, best)
				agrees = f.agrees(&o)
			}
		}
		switch {
		case score < bestScore:
			best, bestScore = i, score
		case score == bestScore && best >= 0 && !agrees:
			return choice{err: errAmbiguous}
		}
	}
	return choice{place: best}
}

// fixupKey is a spec on a candidate.
type fixupKey struct {
	spec  *spec
	place int32
}

// fixup returns the fixup of a spec on a candidate, where -1 is none.
func (d *CiliumDecider) fixup(m *setObject, sp, place int32) fixup {
	s := m.specs[sp]
	switch {
	case place >= 0:
	case s.kind.IsExistence():
		return fixup{local: 1}
	default:
		return fixup{poison: true}
	}
	key := fixupKey{s, place}
	f, ok := d.fixups[key]
	if !ok {
		f = d.m.fixup(s, s.kind, d.tb.candidates(m.question[sp])[place], int(place))
		d.fixups[key] = f
	}
	return f
}

// describe returns cilium/ebpf's decision on a group in words.
func (d *CiliumDecider) describe(m *setObject, g *group, c choice) string {
	if c.err != nil {
		return c.err.Error()
	}
	text := make([]string, len(g.specs))
	for i, sp := range g.specs {
		f := d.fixup(m, sp, c.place)
		text[i] = f.String()
	}
	return strings.Join(text, ", ")
}

// fails reports whether cilium/ebpf fails on a candidate.
func (c choice) fails() bool { return c.err != nil && !errors.Is(c.err, errAmbiguous) }

// Fixup is cilium/ebpf's decision on a record.
type Fixup struct {
	Poison        bool // it makes the instruction invalid
	Local, Target uint64
	ID            bool  // Target is the unknown ID of a type
	Err           error // the load ends with it when the instruction is changed
}

// LinkedDecision is cilium/ebpf's decision on the records of a linked program.
type LinkedDecision struct {
	Err    error // the load ends with it
	Record int   // a record of the local type on which it fails

	decider *CiliumDecider
	m       *setObject
	choices map[int32]choice // keyed by root
}

// Fixup returns the decision on a record of the program if Err is nil, or false if
// the record does not depend on the kernel.
func (d *LinkedDecision) Fixup(record int) (Fixup, bool) {
	rec := &d.m.records[record]
	c, ok := d.choices[d.m.rootOf[rec.spec]]
	if !ok || d.m.question[rec.spec] < 0 {
		return Fixup{}, false
	}
	f := d.decider.fixup(d.m, rec.spec, c.place)
	return Fixup{f.poison, f.local, f.target, f.id, cmp.Or(f.err, rec.insn.cilium(&f))}, true
}

// Linked returns the decision on a linked program of object number i, which is valid until the next call, nil if the object has no
// such program. A relocation that is broken on the local side ends the load.
func (d *CiliumDecider) Linked(i int, section, name string) (*LinkedDecision, error) {
	m := &d.tb.set.objects[i]
	all, err := m.groups()
	if err != nil {
		return nil, err
	}
	if d.of != m { // objects do not share specs
		d.of = m
		clear(d.fixups)
		clear(d.choices)
	}
	n := slices.IndexFunc(all.programs, func(p LinkedProgram) bool { return p.Section == section && p.Name == name })
	if n < 0 {
		return nil, nil
	}
	clear(d.chosen)
	out := &LinkedDecision{decider: d, m: m, choices: d.chosen}
	for _, rec := range all.programs[n].Records {
		if sp := m.records[rec].spec; m.local[sp].err != nil && m.specs[sp].kind != relo.LocalTypeID {
			out.Err, out.Record = m.local[sp].err, rec
			return out, nil
		}
	}
	for _, g := range all.ofProgram[n] {
		c, ok := d.choices[g]
		if !ok {
			c = d.calculateFixups(m, g)
			if err := d.err(); err != nil {
				return nil, err
			}
			d.choices[g] = c
		}
		if c.err != nil && out.Err == nil {
			out.Err, out.Record = c.err, int(m.roots[g.root].records[0])
		}
		out.choices[g.root] = c
	}
	return out, nil
}
