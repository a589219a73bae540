// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relo"
)

// The proof shows that a kernel's full BTF and its minimized BTF give every loader
// the same decisions on the objects of a set.
//
// A column is everything that loaders see of one candidate: the outcomes of all
// questions about its name, for each loader. The same columns in the same order
// give the same decisions. These differences are allowed:
//
//   - Candidates that no loader matches or fails on may be missing.
//   - Equal columns may be merged: they never disagree, and are ruled out
//     together. If a relocation uses their type IDs, which are never equal, their
//     number has to be the same.
//   - Type IDs differ.
//   - The order may differ if no decision depends on it. libbpf takes the size of
//     a load from the first match. cilium/ebpf fails if the best two candidates so
//     far disagree, even if a better one follows.
//   - If modules have types of the name, libbpf and aya see other candidates than
//     cilium/ebpf. Then the columns are those of libbpf and aya, and cilium/ebpf's
//     decisions are compared.
//
// For libbpf, equality does not depend on the programs that are loaded or on their
// order: earlier records rule candidates out, and the others keep their order.

// Difference is the first difference between two kernels. It is an error.
type Difference struct {
	Object     string // one of those with the relocation
	Relocation string // "byte_off struct task_struct.mm.pgd"
	Candidate  string // "struct task_struct", or "" if the order of several matters
	Full       string // the outcome on the full BTF
	Minimized  string // the outcome on the minimized BTF
	Order      bool   // the candidates are the same, in another order
	Name       string // name of the candidates if cilium/ebpf decides differently, else ""
}

// Error names the relocation and both outcomes.
func (d *Difference) Error() string {
	return fmt.Sprintf("%s: %s: %s, minimized %s", d.Object, d.Relocation, d.Full, d.Minimized)
}

// Compare returns the first difference between two tables of one set, the first
// of the full BTF and the second of the minimized one, or nil. The error is that
// of the context.
func Compare(ctx context.Context, full, small *Table) (*Difference, error) {
	if a, b := full.kernel.Order(), small.kernel.Order(); a != b {
		return &Difference{Relocation: "all", Full: a.String(), Minimized: b.String()}, nil
	}
	c := comparison{
		full: full, small: small, fullCilium: full.Cilium(ctx), smallCilium: small.Cilium(ctx),
		meter: limits.NewMeter(ctx, math.MaxInt64, "comparisons of candidates"),
	}
	for name := range full.set.names {
		if d, err := c.name(name); d != nil || err != nil || c.meter.Err() != nil {
			return d, cmp.Or(err, c.meter.Err())
		}
	}
	return nil, nil
}

// comparison is one Compare. Once its meter has an error, results mean nothing.
type comparison struct {
	full, small             *Table
	fullCilium, smallCilium *CiliumDecider
	meter                   *limits.Meter
	buf                     []byte
}

func (c *comparison) name(name int) (*Difference, error) {
	if d := c.sharedID(name); d != nil {
		return d, nil
	}
	full, small := c.columns(c.full, name, true), c.columns(c.small, name, true)
	// The keys are nearly always equal.
	if slices.EqualFunc(full, small, func(a, b column) bool { return a.key == b.key }) {
		return nil, nil
	}
	only, others := without(full, small), without(small, full)
	if len(only)+len(others) > 0 && c.full.inModules(name) {
		full, small = c.columns(c.full, name, false), c.columns(c.small, name, false)
		only, others = without(full, small), without(small, full)
	} else if slices.Equal(order(full), order(small)) {
		return nil, nil
	}
	if len(only)+len(others) > 0 {
		return c.difference(name, only, others), nil
	}
	if d := c.widths(name, full, small); d != nil {
		return d, nil
	}
	return c.decisions(name)
}

// sharedID returns a difference if types of two modules have the same ID. libbpf then resolves the ID, which is ambiguous
// on minimized BTF.
func (c *comparison) sharedID(name int) *Difference {
	if !c.full.inModules(name) {
		return nil
	}
	for _, q := range c.full.set.byName[name] {
		seen := make(map[uint64]bool)
		if !c.full.set.questions[q].hasKind(relo.TargetTypeID) {
			continue
		}
		for i := range c.full.rows[q].libbpf {
			if !c.full.rows[q].libbpf[i].matches {
				continue
			}
			id := c.full.value(q, int32(i), relo.TargetTypeID).val
			if seen[id] {
				d := c.full.set.difference(q)
				d.Full, d.Minimized = fmt.Sprintf("two modules have a type with ID %d", id), "the IDs differ"
				return d
			}
			seen[id] = true
		}
	}
	return nil
}

// columns returns the columns of a name, in the order of the candidates. cilium says that the outcomes for cilium/ebpf
// count.
func (c *comparison) columns(tb *Table, name int, cilium bool) (l []column) {
	for i := range tb.cands[name] {
		if !c.meter.Step(1 + len(tb.set.byName[name])) {
			break
		}
		col, matters := column{place: i}, false
		c.buf = c.buf[:0]
		for _, q := range tb.set.byName[name] {
			o := tb.outcome(q, i)
			if !cilium {
				o.cilium = ciliumOutcome{}
			}
			c.buf = tb.appendOutcome(c.buf, &tb.set.questions[q], &o)
			matters = matters || o.matters()
			col.ids = col.ids || o.matters() && tb.set.questions[q].hasKind(relo.TargetTypeID)
		}
		if matters {
			col.key = string(c.buf)
			l = append(l, col)
		}
	}
	return l
}

// difference describes the first columns that only one side has, by the first question on which they differ.
func (c *comparison) difference(name int, only, others []column) *Difference {
	i, j := -1, -1
	if len(only) > 0 {
		i = only[0].place
	}
	if len(others) > 0 {
		j = others[0].place
	}
	set := c.full.set
	of := set.byName[name]
	q := of[slices.IndexFunc(of, func(q int) bool {
		full, small := c.full.outcome(q, i), c.small.outcome(q, j)
		return !bytes.Equal(c.full.appendOutcome(nil, &set.questions[q], &full), c.small.appendOutcome(nil, &set.questions[q], &small))
	})]
	d := set.difference(q)
	d.Full, d.Minimized = c.full.text(q, i), c.small.text(q, j)
	cand := c.full.cands[name]
	if i < 0 {
		cand, i = c.small.cands[name], j
	}
	d.Candidate = typeName(cand[i].view.Type(cand[i].id))
	return d
}

// difference begins a difference on a question.
func (s *Set) difference(q int) *Difference {
	for i := range s.objects {
		m := &s.objects[i]
		for n, of := range m.question {
			if of == q {
				return &Difference{Object: m.name, Relocation: m.specs[n].String()}
			}
		}
	}
	return &Difference{Relocation: s.questions[q].spec.String()}
}

// widths compares the order of the columns as far as libbpf's decisions depend on it: of the candidates with one value
// the first has the width of the load, whichever of them earlier records rule out.
func (c *comparison) widths(name int, full, small []column) *Difference {
	for _, q := range c.full.set.byName[name] {
		if !c.full.set.questions[q].hasKind(relo.ByteOffset) || !c.meter.Step(len(full)+len(small)) {
			continue
		}
		a, b := c.full.widths(q, full), c.small.widths(q, small)
		for _, v := range slices.SortedFunc(maps.Keys(a), func(a, b fieldPlace) int {
			return cmp.Or(cmp.Compare(a.bitOff, b.bitOff), cmp.Compare(a.val, b.val))
		}) {
			l, o := a[v], b[v]
			for i := range min(len(l), len(o)) {
				if l[i].load == o[i].load && slices.Equal(l[i].keys, o[i].keys) {
					continue
				}
				d := c.full.set.difference(q)
				d.Relocation = strings.Replace(d.Relocation, c.full.set.questions[q].spec.kind.String(), relo.ByteOffset.String(), 1)
				d.Full, d.Minimized = effect{val: v.val, load: l[i].load}.String(), effect{val: v.val, load: o[i].load}.String()
				d.Order = true
				return d
			}
		}
	}
	return nil
}

// decisions compares the decisions of aya and cilium/ebpf on all records about a name.
func (c *comparison) decisions(name int) (*Difference, error) {
	full, small := c.full, c.small
	fullAya, smallAya := full.Aya(), small.Aya()
	for i := range full.set.objects {
		m := &full.set.objects[i]
		for r := range m.roots {
			root := &m.roots[r]
			if root.question < 0 || full.set.questions[root.question].name != name {
				continue
			}
			for _, rec := range root.records {
				if !c.meter.Step(1 + len(full.candidates(root.question)) + len(small.candidates(root.question))) {
					return nil, nil
				}
				st := m.siteOf[rec]
				if a, b := fullAya.decide(m, st), smallAya.decide(m, st); !a.Same(&b) {
					return &Difference{
						Object: m.name, Relocation: m.specs[m.sites[st].spec].String(),
						Full: "aya: " + a.String(), Minimized: b.String(), Order: true,
					}, nil
				}
			}
			if d, err := c.groups(m, r); d != nil || err != nil {
				return d, err
			}
		}
	}
	return nil, nil
}

// groups compares cilium/ebpf's decisions on the records of a root. That it finds IDs of modules' types only in minimized BTF is not
// a difference.
func (c *comparison) groups(m *setObject, r int) (*Difference, error) {
	all, err := m.groups()
	if err != nil {
		return nil, err
	}
	q := m.roots[r].question
	rows := len(c.full.candidates(q)) + len(c.small.candidates(q))
	for _, g := range all.ofRoot[r] {
		if !c.meter.Step(len(g.specs) * rows) {
			return nil, nil
		}
		a, b := c.fullCilium.calculateFixups(m, g), c.smallCilium.calculateFixups(m, g)
		full, small := c.fullCilium.describe(m, g, a), c.smallCilium.describe(m, g, b)
		if err := cmp.Or(c.fullCilium.err(), c.smallCilium.err()); err != nil {
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
		full, small := c.fullCilium.fixup(m, sp, a.place), c.smallCilium.fixup(m, sp, b.place)
		if full.String() != small.String() && !(full.poison && small.id) {
			return false
		}
	}
	return true
}
