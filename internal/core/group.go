// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relo"
)

// How cilium/ebpf chooses (CORERelocate and coreCalculateFixups in btf/core.go, v0.22):
// candidates are those of vmlinux and then of all modules, by name. It decides
// all relocations of one local type in one unit together and scores each candidate
// by how many of them fail on it. If two candidates with the best score so far
// disagree, it fails without a look at the rest, so its choice can depend on the
// order of candidates. Of candidates that agree in all values the first counts. A
// relocation that fails agrees with one that resolves to 0.

// group is the relocations of one local type in one unit, as distinct specs with counts.
type group struct {
	root   int32
	specs  []int32 // ascending
	counts []int
	total  int
}

// groups are the units of an object, and their distinct groups.
type groups struct {
	units          []Unit
	ofUnit, ofRoot [][]*group
}

func (m *setObject) makeGroups() (*groups, error) {
	units, err := m.Units()
	if err != nil {
		return nil, err
	}
	g := &groups{units, make([][]*group, len(units)), make([][]*group, len(m.roots))}
	known := make(map[string]*group)
	for i, u := range units {
		for _, one := range m.groupsOf(u.Records) {
			key := fmt.Sprint(one)
			if known[key] == nil {
				known[key] = &one
				g.ofRoot[one.root] = append(g.ofRoot[one.root], &one)
			}
			g.ofUnit[i] = append(g.ofUnit[i], known[key])
		}
	}
	return g, nil
}

// groupsOf groups the records of a unit by local type.
func (m *setObject) groupsOf(unit []int) (out []group) {
	specs := make(map[int32]int)
	for _, rec := range unit {
		if n := m.records[rec].spec; m.question[n] >= 0 {
			specs[n]++
		}
	}
	at := make(map[int32]int) // by root
	for _, n := range slices.Sorted(maps.Keys(specs)) {
		root := m.rootOf[n]
		i, ok := at[root]
		if !ok {
			i = len(out)
			at[root] = i
			out = append(out, group{root: root})
		}
		g := &out[i]
		g.specs, g.counts, g.total = append(g.specs, n), append(g.counts, specs[n]), g.total+specs[n]
	}
	return out
}

// choice is cilium/ebpf's decision on a group: a candidate, or the error that ends the load of the program.
type choice struct {
	place int32 // of the candidate in its row, -1 for none
	err   error
}

// ciliumDecider decides as cilium/ebpf does, with the candidates of a table. It is
// scratch memory.
type ciliumDecider struct {
	tb      *Table
	m       ciliumMatcher
	fixups  map[fixupKey]fixup
	choices map[*group]choice
	unit    map[int32]choice // of the last unit, by root
}

// reset begins with another table. The meter counts the comparisons of all decisions.
func (d *ciliumDecider) reset(tb *Table, meter *limits.Meter) {
	d.tb, d.m.meter, d.m.deep = tb, meter, false
	if d.fixups == nil {
		d.fixups, d.choices, d.unit = make(map[fixupKey]fixup), make(map[*group]choice), make(map[int32]choice)
	}
	clear(d.fixups)
	clear(d.choices)
}

// err returns the error after which decisions mean nothing, or nil.
func (d *ciliumDecider) err() error { return d.m.meter.Err() }

// calculateFixups chooses the candidate of a group (coreCalculateFixups).
func (d *ciliumDecider) calculateFixups(m *setObject, g *group) choice {
	tb := d.tb
	best, bestScore := int32(-1), g.total
	q := m.roots[g.root].question
	for i := range int32(len(tb.rows[q])) {
		if tb.cands[tb.set.questions[q].name][i].by&btf.Cilium == 0 {
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
func (d *ciliumDecider) fixup(m *setObject, sp, place int32) fixup {
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
		f = d.m.fixup(s, s.kind, d.tb.cands[d.tb.set.questions[m.question[sp]].name][place], int(place))
		d.fixups[key] = f
	}
	return f
}

// describe returns cilium/ebpf's decision on a group in words.
func (d *ciliumDecider) describe(m *setObject, g *group, c choice) string {
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

// groups compares cilium/ebpf's decisions on the records of a root. That it finds IDs of modules' types only in minimized BTF is not
// a difference.
func (c *comparison) groups(m *setObject, r int) (*Difference, error) {
	all, err := m.groups()
	if err != nil {
		return nil, err
	}
	q := m.roots[r].question
	rows := len(c.full.rows[q]) + len(c.small.rows[q])
	for _, g := range all.ofRoot[r] {
		if !c.meter.Step(len(g.specs) * rows) {
			return nil, nil
		}
		a, b := c.full.cilium.calculateFixups(m, g), c.small.cilium.calculateFixups(m, g)
		full, small := c.full.cilium.describe(m, g, a), c.small.cilium.describe(m, g, b)
		if err := cmp.Or(c.full.cilium.err(), c.small.cilium.err()); err != nil {
			return nil, err
		}
		if full != small && !(a.fails() && b.fails()) && !c.onlyIDs(m, g, a, b) {
			return &Difference{Object: m.name, Relocation: m.specs[g.specs[0]].String(), Order: true, Full: "cilium/ebpf: " + full, Minimized: small,
				Name: m.specs[g.specs[0]].name()}, nil
		}
	}
	return nil, nil
}

// onlyIDs reports whether two choices differ only in IDs of types, which types of modules do not have.
func (c *comparison) onlyIDs(m *setObject, g *group, a, b choice) bool {
	if a.err != nil || b.err != nil || len(c.full.kernel.views) == 1 {
		return false
	}
	for _, sp := range g.specs {
		full, small := c.full.cilium.fixup(m, sp, a.place), c.small.cilium.fixup(m, sp, b.place)
		if full.String() != small.String() && !(full.poison && small.id) {
			return false
		}
	}
	return true
}

// fails reports whether cilium/ebpf fails on a candidate.
func (c choice) fails() bool { return c.err != nil && !errors.Is(c.err, errAmbiguous) }

// Fixup is cilium/ebpf's decision on a record.
type Fixup struct {
	Poison        bool // it makes the instruction invalid
	Local, Target uint64
	ID            bool  // Target is the unknown ID of a type
	Err           error // that ends the load when the instruction is changed
}

// UnitDecision is cilium/ebpf's decision on the records of a unit.
type UnitDecision struct {
	Err    error // that ends the load
	Record int   // a record of the local type on which it fails

	decider *ciliumDecider
	m       *setObject
	choices map[int32]choice // by root
}

// Fixup returns the decision on a record of the unit if Err is nil, or false if
// the record does not depend on the kernel.
func (d *UnitDecision) Fixup(record int) (Fixup, bool) {
	rec := &d.m.records[record]
	c, ok := d.choices[d.m.rootOf[rec.spec]]
	if !ok || d.m.question[rec.spec] < 0 {
		return Fixup{}, false
	}
	f := d.decider.fixup(d.m, rec.spec, c.place)
	return Fixup{f.poison, f.local, f.target, f.id, cmp.Or(f.err, rec.insn.cilium(&f))}, true
}

// Unit returns the decision on a unit of object number i, which is valid until the next call, nil if the object has no
// such unit. A relocation that is broken on the local side ends the load.
func (tb *Table) Unit(i int, section, name string) (*UnitDecision, error) {
	m := &tb.set.objects[i]
	all, err := m.groups()
	if err != nil {
		return nil, err
	}
	n := slices.IndexFunc(all.units, func(u Unit) bool { return u.Section == section && u.Name == name })
	if n < 0 {
		return nil, nil
	}
	by := &tb.cilium
	clear(by.unit)
	d := &UnitDecision{decider: by, m: m, choices: by.unit}
	for _, rec := range all.units[n].Records {
		if sp := m.records[rec].spec; m.local[sp].err != nil && m.specs[sp].kind != relo.LocalTypeID {
			d.Err, d.Record = m.local[sp].err, rec
			return d, nil
		}
	}
	for _, g := range all.ofUnit[n] {
		c, ok := by.choices[g]
		if !ok {
			c = by.calculateFixups(m, g)
			if err := by.err(); err != nil {
				return nil, err
			}
			by.choices[g] = c
		}
		if c.err != nil && d.Err == nil {
			d.Err, d.Record = c.err, int(m.roots[g.root].records[0])
		}
		d.choices[g.root] = c
	}
	return d, nil
}

// Unit is a function with all functions that it refers to, directly or not.
// cilium/ebpf relocates these together (flattenInstructions in linker.go, v0.22).
type Unit struct {
	Section, Name string
	Records       []int // of the object
}

// Units returns the units of the object, none if its code cannot be read. The error
// is a [limits.Exceeded].
func (o *Object) Units() ([]Unit, error) { return o.units() }

func link(o *bpfobj.Code, err error) ([]Unit, error) {
	if x := (*limits.Exceeded)(nil); errors.As(err, &x) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	units := make([]Unit, len(o.Programs))
	for i, p := range o.Programs {
		fn := &o.Funcs[p.Fn]
		units[i] = Unit{fn.Section, fn.Name, p.Records}
	}
	return units, nil
}
