// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relo"
)

// How cilium/ebpf chooses (coreCalculateFixups in btf/core.go, v0.22): it decides
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

// groups are the distinct groups of an object.
type groups struct {
	all    []group
	ofUnit [][]int32
	ofRoot [][]int32
}

func (m *member) makeGroups() (*groups, error) {
	units, err := m.Units()
	if err != nil {
		return nil, err
	}
	g := &groups{ofUnit: make([][]int32, len(units)), ofRoot: make([][]int32, len(m.roots))}
	known := make(map[string]int32)
	for i := range units {
		for _, one := range m.groupsOf(units[i].Records) {
			key := one.key()
			n, ok := known[key]
			if !ok {
				n = int32(len(g.all))
				known[key] = n
				g.all = append(g.all, one)
				g.ofRoot[one.root] = append(g.ofRoot[one.root], n)
			}
			g.ofUnit[i] = append(g.ofUnit[i], n)
		}
	}
	return g, nil
}

// groupsOf groups the records of a unit by local type.
func (m *member) groupsOf(unit []int32) (out []group) {
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

// key is equal for equal groups.
func (g *group) key() string {
	var b []byte
	for i, n := range g.specs {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(n)), uint64(g.counts[i]))
	}
	return string(b)
}

// choice is cilium/ebpf's decision on a group: a fixup for each spec, or the error
// that ends the load of the program.
type choice struct {
	fixups []fixup
	err    error
}

// same reports whether two choices do the same to all instructions.
func (c *choice) same(o *choice) bool {
	if c.err != nil || o.err != nil {
		return c.err != nil && o.err != nil && errors.Is(c.err, errAmbiguous) == errors.Is(o.err, errAmbiguous)
	}
	return slices.EqualFunc(c.fixups, o.fixups, func(a, b fixup) bool {
		return a.poison == b.poison && (a.id && b.id || a.local == b.local && a.target == b.target)
	})
}

func (c *choice) String() string {
	if c.err != nil {
		return c.err.Error()
	}
	text := make([]string, len(c.fixups))
	for i := range c.fixups {
		text[i] = c.fixups[i].String()
	}
	return strings.Join(text, ", ")
}

// choose decides a group. merged says that types of modules count as vmlinux's, as
// in a minimized BTF.
func (tb *Table) choose(m *member, g *group, merged bool) *choice {
	r := &m.roots[g.root]
	best, fixups := tb.spareFixups(len(g.specs)), tb.spareFixups(len(g.specs))
	defer func() { tb.spare = append(tb.spare, fixups) }()
	bestScore, found := g.total, false
	for i := range tb.rows[r.question] {
		cand := tb.cands[tb.set.questions[r.question].name][i]
		if cand.by&btf.Cilium == 0 {
			continue
		}
		score := 0
		for n, sp := range g.specs {
			f := tb.fixup(fixupKey{m.specs[sp], int32(i), merged}, cand)
			if f.err != nil {
				return &choice{err: f.err}
			}
			if f.failed(m.specs[sp].kind) {
				score += g.counts[n]
			}
			fixups[n] = f
		}
		switch {
		case score < bestScore:
			best, fixups, bestScore, found = fixups, best, score, true
		case score == bestScore && found && !slices.EqualFunc(best, fixups, func(a, b fixup) bool { return a.agrees(&b) }):
			return &choice{err: errAmbiguous}
		}
	}
	if !found {
		for n, sp := range g.specs {
			if best[n] = (fixup{poison: !m.specs[sp].kind.IsExistence()}); !best[n].poison {
				best[n].local = 1
			}
		}
	}
	return &choice{fixups: best}
}

// spareFixups returns n fixups, whose content is undefined, in memory of an earlier
// kernel if there is some.
func (tb *Table) spareFixups(n int) []fixup {
	for len(tb.spare) > 0 {
		last := len(tb.spare) - 1
		f := tb.spare[last]
		tb.spare = tb.spare[:last]
		if cap(f) >= n {
			return f[:n]
		}
	}
	return make([]fixup, n)
}

// mostFixups bounds the fixups that a table remembers.
const mostFixups = 1 << 16

// fixup returns the fixup of a spec on a candidate and remembers it.
func (tb *Table) fixup(key fixupKey, c candidate) fixup {
	f, ok := tb.fixups[key]
	if !ok {
		if len(tb.fixups) == mostFixups {
			clear(tb.fixups)
		}
		f = tb.cilium.fixup(key.spec, key.spec.kind, c, int(key.place), key.merged)
		if tb.fixups == nil {
			tb.fixups = make(map[fixupKey]fixup)
		}
		tb.fixups[key] = f
	}
	return f
}

type fixupKey struct {
	spec   *spec
	place  int32 // of the candidate in its row
	merged bool
}

// groups compares cilium/ebpf's decisions on the records of a root, on two kernels
// whose candidates have the same columns in another order.
func (c *comparison) groups(m *member, r int) (*Difference, error) {
	all, err := m.groups()
	if err != nil {
		return nil, err
	}
	q := m.roots[r].question
	rows := len(c.full.rows[q]) + len(c.small.rows[q])
	for _, n := range all.ofRoot[r] {
		g := &all.all[n]
		if !c.meter.Step(len(g.specs) * rows) {
			return nil, nil
		}
		a, b := c.full.choose(m, g, true), c.small.choose(m, g, true)
		if err := cmp.Or(c.full.cilium.meter.Err(), c.small.cilium.meter.Err()); err != nil {
			return nil, err
		}
		if !a.same(b) {
			return &Difference{
				Object: m.name, Relocation: m.specs[g.specs[0]].String(), Order: true,
				Full: "cilium/ebpf: " + a.String(), Minimized: b.String(),
			}, nil
		}
	}
	return nil, nil
}

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

	m      *member
	fixups map[int32]*fixup // by spec
}

// Fixup returns the decision on a record of the unit if Err is nil, or false if
// the record does not depend on the kernel.
func (d *UnitDecision) Fixup(record int) (Fixup, bool) {
	rec := &d.m.records[record]
	f := d.fixups[rec.spec]
	if f == nil {
		return Fixup{}, false
	}
	return Fixup{f.poison, f.local, f.target, f.id, rec.insn.cilium(f)}, true
}

// Unit returns the decision on a unit of object number i, which is valid until the next call, nil if the object has no
// such unit. A relocation that is broken on the local side ends the load.
func (tb *Table) Unit(i int, section, name string) (*UnitDecision, error) {
	m := &tb.set.objects[i]
	units, err := m.Units()
	if err != nil {
		return nil, err
	}
	all, err := m.groups()
	if err != nil {
		return nil, err
	}
	n := slices.IndexFunc(units, func(u Unit) bool { return u.Section == section && u.Name == name })
	if n < 0 {
		return nil, nil
	}
	if tb.unit == nil {
		tb.unit = make(map[int32]*fixup)
	}
	clear(tb.unit)
	d := &UnitDecision{m: m, fixups: tb.unit}
	for _, rec := range units[n].Records {
		if sp := m.records[rec].spec; m.local[sp].err != nil && m.specs[sp].kind != relo.LocalTypeID {
			d.Err, d.Record = m.local[sp].err, int(rec)
			return d, nil
		}
	}
	for _, i := range all.ofUnit[n] {
		g := &all.all[i]
		c, ok := tb.choices[g]
		if !ok {
			c = tb.choose(m, g, false)
			if err := tb.cilium.meter.Err(); err != nil {
				return nil, err
			}
			if tb.choices == nil {
				tb.choices = make(map[*group]*choice)
			}
			tb.choices[g] = c
		}
		if c.err != nil && d.Err == nil {
			d.Err, d.Record = c.err, int(m.steps[m.roots[g.root].steps[0]].record)
		}
		for k := range c.fixups {
			d.fixups[g.specs[k]] = &c.fixups[k]
		}
	}
	return d, nil
}

// Unit is a function with all functions that it refers to, directly or not.
// cilium/ebpf relocates these together (flattenInstructions in linker.go, v0.22).
type Unit struct {
	Section, Name string
	Records       []int32 // of the object
}

// Units returns the units of the object, none if its code cannot be read. The error
// is a [limits.Exceeded].
func (o *Object) Units() ([]Unit, error) { return o.units() }

func link(data []byte) ([]Unit, error) {
	f, err := bpfobj.Open(data)
	if err != nil {
		return nil, nil
	}
	o, err := f.Parse(context.Background())
	if x := (*limits.Exceeded)(nil); errors.As(err, &x) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	units := make([]Unit, len(o.Programs))
	for i, p := range o.Programs {
		fn := &o.Funcs[p.Fn]
		units[i] = Unit{Section: fn.Section, Name: fn.Name, Records: make([]int32, len(p.Records))}
		for k, r := range p.Records {
			units[i].Records[k] = int32(r)
		}
	}
	return units, nil
}
