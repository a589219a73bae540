// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/bits"
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
// What is equal for libbpf does not depend on which programs are loaded, or in which
// order: earlier records rule candidates out, which leaves the others' order.

// Difference is the first difference between two kernels. It is an error.
type Difference struct {
	Object     string // one of those with the relocation
	Relocation string // "byte_off struct task_struct.mm.pgd"
	Candidate  string // "struct task_struct", or "" if the order of several matters
	Full       string // the outcome on the full BTF
	Minimized  string // the outcome on the minimized BTF
	Order      bool   // the candidates are the same, in another order
	Name       string // of the candidates, for a decision of cilium/ebpf's; else ""
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
	c := comparison{full: full, small: small, meter: limits.NewMeter(ctx, math.MaxInt64, "comparisons of candidates")}
	for name := range full.set.names {
		if d, err := c.name(name); d != nil || err != nil || c.meter.Err() != nil {
			return d, cmp.Or(err, c.meter.Err())
		}
	}
	return nil, nil
}

// comparison is one Compare. Once its meter has an error, results mean nothing.
type comparison struct {
	full, small *Table
	meter       *limits.Meter
	buf         []byte
}

func (c *comparison) name(name int) (*Difference, error) {
	if d := c.sharedID(name); d != nil {
		return d, nil
	}
	full, small := c.columns(c.full, name, true), c.columns(c.small, name, true)
	if slices.EqualFunc(full, small, func(a, b column) bool { return a.key == b.key }) { // as nearly always
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
		for i := range c.full.rows[q] {
			o, quest := &c.full.rows[q][i], &c.full.set.questions[q]
			if !quest.hasKind(relo.TargetTypeID) || !o.libbpf {
				continue
			}
			id := c.full.value(quest, o, relo.TargetTypeID).val
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

// inModules reports whether a module has a type of the name.
func (tb *Table) inModules(name int) bool {
	all := tb.cands[name]
	return len(all) > 0 && all[len(all)-1].view.module != ""
}

// column is a candidate that a loader matches or fails on.
type column struct {
	place int    // among the candidates of its name, -1 for one that no loader matches
	key   string // what loaders see of it; equal columns have equal ids
	ids   bool   // a relocation uses the type ID
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
				alone := *o
				alone.cilium, alone.fatal = 0, 0
				o = &alone
			}
			c.buf = tb.appendOutcome(c.buf, &tb.set.questions[q], o)
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

// outcome returns the outcome of a question for the candidate at a place.
func (tb *Table) outcome(q, place int) *outcome {
	if place < 0 || place >= len(tb.rows[q]) {
		return new(outcome)
	}
	return &tb.rows[q][place]
}

// appendOutcome appends an encoding that is equal only for equal outcomes.
func (tb *Table) appendOutcome(b []byte, q *question, c *outcome) []byte {
	flags := byte(0)
	for i, f := range []bool{c.libbpf, c.err, c.aya, c.field != c.load} {
		if f {
			flags |= 1 << i
		}
	}
	if b = append(b, flags); !c.matters() {
		return b
	}
	le := binary.LittleEndian
	b = le.AppendUint16(le.AppendUint16(le.AppendUint16(b, c.bad), c.cilium), c.fatal)
	b = c.load.append(le.AppendUint32(b, c.bitOff))
	if c.field != c.load {
		b = c.field.append(b)
	}
	b = le.AppendUint64(b, c.ayaValue)
	n := bits.OnesCount16(q.kinds)
	for i, k := range q.each() {
		if k != relo.TargetTypeID {
			b = le.AppendUint64(b, tb.values[int(c.at)+i])
			if c.cilium&(1<<k) != 0 {
				b = le.AppendUint64(b, tb.values[int(c.at)+n+i])
			}
		}
	}
	return b
}

func (l load) append(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, l.size), byte(l.kind), l.enc)
}

// order returns the keys of columns, equal ones once unless they count.
func order(l []column) (out []string) {
	seen := make(map[string]bool, len(l))
	for _, c := range l {
		if c.ids || !seen[c.key] {
			seen[c.key] = true
			out = append(out, c.key)
		}
	}
	return out
}

// without returns the columns of l that o does not have, or has less often where
// that counts.
func without(l, o []column) (out []column) {
	count := make(map[string]int)
	for _, c := range o {
		count[c.key]++
	}
	for _, c := range l {
		switch n := count[c.key]; {
		case n <= 0:
			out = append(out, c)
		case c.ids:
			count[c.key] = n - 1
		}
	}
	return out
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
		full := c.full.appendOutcome(nil, &set.questions[q], c.full.outcome(q, i))
		return !bytes.Equal(full, c.small.appendOutcome(nil, &set.questions[q], c.small.outcome(q, j)))
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

// text describes the outcome of a question for the candidate at a place.
func (tb *Table) text(q, place int) string {
	quest, c := &tb.set.questions[q], tb.outcome(q, place)
	switch {
	case place < 0:
		return "no such candidate"
	case !c.matters():
		return "no match"
	}
	var values [2][]string // of libbpf, cilium/ebpf
	if quest.spec.kind.IsField() {
		values[0] = append(values[0], fmt.Sprintf("bit %d", c.bitOff))
	}
	for i, k := range quest.each() {
		for loader, kinds := range []struct{ good, bad uint16 }{{^c.bad, c.bad}, {c.cilium, c.fatal}} {
			text := ""
			switch {
			case kinds.bad&(1<<k) != 0:
				text = "no " + k.String()
			case kinds.good&(1<<k) == 0:
				continue
			case k == relo.TargetTypeID:
				text = k.String()
			default:
				text = fmt.Sprintf("%s %d", k, tb.values[int(c.at)+loader*bits.OnesCount16(quest.kinds)+i])
			}
			values[loader] = append(values[loader], text)
		}
	}
	if c.load.ok {
		values[0] = append(values[0], c.load.String())
	}
	var loaders []string
	switch {
	case c.err:
		loaders = append(loaders, "libbpf gives up")
	case c.libbpf:
		loaders = append(loaders, "libbpf: "+strings.Join(values[0], ", "))
	}
	if len(values[1]) > 0 {
		loaders = append(loaders, "cilium/ebpf: "+strings.Join(values[1], ", "))
	}
	if c.aya {
		loaders = append(loaders, "aya matches")
	}
	return strings.Join(loaders, "; ")
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
				d.Full, d.Minimized, d.Order = effect{val: v.val, load: l[i].load}.String(), effect{val: v.val, load: o[i].load}.String(), true
				return d
			}
		}
	}
	return nil
}

// fieldPlace is where libbpf finds a field.
type fieldPlace struct {
	bitOff uint32
	val    uint64
}

// width is a run of candidates that give a load the same width.
type width struct {
	load load
	keys []string // of the columns, sorted
}

// widths returns the widths of a question in the order of the columns, for each place of the field.
func (tb *Table) widths(q int, columns []column) map[fieldPlace][]width {
	out, seen := make(map[fieldPlace][]width), make(map[string]bool)
	for _, col := range columns {
		o := tb.outcome(q, col.place)
		if seen[col.key] || !o.libbpf || o.err || o.bad&(1<<relo.ByteOffset) != 0 {
			continue
		}
		seen[col.key] = true
		p := fieldPlace{o.bitOff, tb.value(&tb.set.questions[q], o, relo.ByteOffset).val}
		l := out[p]
		if len(l) == 0 || l[len(l)-1].load != o.load {
			l = append(l, width{load: o.load})
		}
		l[len(l)-1].keys = append(l[len(l)-1].keys, col.key)
		out[p] = l
	}
	for _, l := range out {
		for i := range l {
			slices.Sort(l[i].keys)
		}
	}
	return out
}

// decisions compares the decisions of aya and cilium/ebpf on all records about a name.
func (c *comparison) decisions(name int) (*Difference, error) {
	full, small := c.full, c.small
	for i := range full.set.objects {
		m := &full.set.objects[i]
		for r := range m.roots {
			root := &m.roots[r]
			if root.question < 0 || full.set.questions[root.question].name != name {
				continue
			}
			for _, rec := range root.records {
				if !c.meter.Step(1 + len(full.rows[root.question]) + len(small.rows[root.question])) {
					return nil, nil
				}
				st := m.siteOf[rec]
				if a, b := full.aya(m, st), small.aya(m, st); !a.Same(&b) {
					return &Difference{Object: m.name, Relocation: m.specs[m.sites[st].spec].String(), Full: "aya: " + a.String(), Minimized: b.String(), Order: true}, nil
				}
			}
			if d, err := c.groups(m, r); d != nil || err != nil {
				return d, err
			}
		}
	}
	return nil, nil
}

// effect is the change of an instruction, or the failure.
type effect struct {
	result relo.Result
	val    uint64
	load   load
}

// effectOf returns the effect of a decision. id says that the value is the ID of a type.
func effectOf(result relo.Result, val uint64, l load, id bool) effect {
	switch {
	case result == relo.Ambiguous:
		return effect{result: relo.Error} // the order decides which comes first, and both end the load
	case result != relo.Resolved:
		return effect{result: result}
	case id:
		val = 0
	}
	return effect{result, val, l}
}

func (e effect) String() string {
	switch {
	case e.result != relo.Resolved:
		return e.result.String()
	case e.load.ok:
		return fmt.Sprintf("%d, %s", e.val, e.load)
	}
	return fmt.Sprint(e.val)
}
