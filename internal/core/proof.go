// SPDX-License-Identifier: Apache-2.0

package core

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
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

// Difference is the first difference between two kernels. It is an error.
type Difference struct {
	Object     string // one of those with the relocation
	Relocation string // "byte_off struct task_struct.mm.pgd"
	Candidate  string // "struct task_struct", or "" if the order of several matters
	Full       string // the outcome on the full BTF
	Minimized  string // the outcome on the minimized BTF
	Order      bool   // the candidates are the same, in another order
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
	f, s        columns // of the last name
}

func (c *comparison) name(name int) (*Difference, error) {
	c.f.read(c.full, name, c.meter)
	c.s.read(c.small, name, c.meter)
	if slices.EqualFunc(c.f.key, c.s.key, bytes.Equal) { // as nearly always
		return nil, nil
	}
	if d := c.f.compare(&c.s); d != nil || slices.EqualFunc(c.f.order(), c.s.order(), bytes.Equal) {
		return d, nil
	}
	return c.decisions(name)
}

// columns are the candidates of one name that a loader matches or fails on, in
// their order.
type columns struct {
	tb    *Table
	name  int
	place []int32
	key   [][]byte // the column, as bytes; equal ones have equal ids
	ids   []bool   // a relocation uses the type ID
	buf   []byte   // that key refers to
}

// read replaces l with the columns of a name, and reuses its memory.
func (l *columns) read(tb *Table, name int, meter *limits.Meter) {
	*l = columns{tb: tb, name: name, place: l.place[:0], key: l.key[:0], ids: l.ids[:0], buf: l.buf}
	buf := l.buf[:0]
	for i := range tb.cands[name] {
		if !meter.Step(1 + len(tb.set.byName[name])) {
			break
		}
		from := len(buf)
		matters, ids := false, false
		for _, q := range tb.set.byName[name] {
			if i >= len(tb.rows[q]) {
				buf = append(buf, 0)
				continue
			}
			c := &tb.rows[q][i]
			buf = tb.appendOutcome(buf, &tb.set.questions[q], c)
			matters = matters || c.matters()
			ids = ids || c.matters() && tb.set.questions[q].asks(relo.TargetTypeID)
		}
		if !matters {
			buf = buf[:from]
			continue
		}
		l.place = append(l.place, int32(i))
		l.key = append(l.key, buf[from:len(buf):len(buf)])
		l.ids = append(l.ids, ids)
	}
	l.buf = buf
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
	b = le.AppendUint16(le.AppendUint16(le.AppendUint16(b, c.bad), c.cilium), c.stuck)
	b = c.load.append(le.AppendUint32(b, c.bitOff))
	if c.field != c.load {
		b = c.field.append(b)
	}
	b = le.AppendUint64(b, c.ayaValue)
	n := bits.OnesCount16(q.kinds)
	for i, k := range q.each() {
		if k != relo.TargetTypeID {
			b = le.AppendUint64(le.AppendUint64(b, tb.values[int(c.at)+i]), tb.values[int(c.at)+n+i])
		}
	}
	return b
}

func (l load) append(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, l.size), byte(l.kind), l.enc)
}

// order returns the columns in the order of the candidates, equal ones once
// unless they count.
func (l *columns) order() [][]byte {
	var out [][]byte
	seen := make(map[string]bool, len(l.key))
	for i, k := range l.key {
		if l.ids[i] || !seen[string(k)] {
			seen[string(k)] = true
			out = append(out, k)
		}
	}
	return out
}

// compare looks for a column that only one side has, or has more often.
func (l *columns) compare(o *columns) *Difference {
	only, others := l.without(o), o.without(l)
	if len(only) == 0 && len(others) == 0 {
		return nil
	}
	return l.difference(o, only, others)
}

// without returns the columns that o does not have, or has less often where
// that counts.
func (l *columns) without(o *columns) (out []int) {
	count := make(map[string]int)
	for _, k := range o.key {
		count[string(k)]++
	}
	for i, k := range l.key {
		switch n := count[string(k)]; {
		case n <= 0:
			out = append(out, i)
		case l.ids[i]:
			count[string(k)] = n - 1
		}
	}
	return out
}

// difference describes one column that only one side has, next to the column of
// the other side that is most similar. -1 is one that no loader matches.
func (l *columns) difference(o *columns, only, others []int) *Difference {
	if len(only) == 0 {
		only = []int{-1}
	}
	if len(others) == 0 {
		others = []int{-1}
	}
	i, j, differ := only[0], others[0], l.questions(o, only[0], others[0])
	for _, x := range only {
		for _, y := range others {
			if d := l.questions(o, x, y); len(d) < len(differ) {
				i, j, differ = x, y, d
			}
		}
	}
	q := differ[0]
	d := l.tb.set.difference(q)
	d.Full, d.Minimized = l.text(q, i), o.text(q, j)
	of, at := l, i
	if i < 0 {
		of, at = o, j
	}
	cand := of.tb.cands[l.name][of.place[at]]
	d.Candidate = typeName(cand.view.Type(cand.id))
	return d
}

// questions returns the questions on which two columns differ. -1 is a column
// that no loader matches.
func (l *columns) questions(o *columns, i, j int) (out []int) {
	for _, q := range l.tb.set.byName[l.name] {
		if !bytes.Equal(l.outcome(q, i), o.outcome(q, j)) {
			out = append(out, q)
		}
	}
	return out
}

func (l *columns) outcome(q, i int) []byte {
	if i < 0 || int(l.place[i]) >= len(l.tb.rows[q]) {
		return []byte{0}
	}
	return l.tb.appendOutcome(nil, &l.tb.set.questions[q], &l.tb.rows[q][l.place[i]])
}

// text describes the outcome of column i, -1 for none, on question q.
func (l *columns) text(q, i int) string {
	if i < 0 || int(l.place[i]) >= len(l.tb.rows[q]) {
		return "no such candidate"
	}
	quest, c := &l.tb.set.questions[q], &l.tb.rows[q][l.place[i]]
	if !c.matters() {
		return "no match"
	}
	var libbpf, cilium, loaders []string
	if quest.spec.kind.IsField() {
		libbpf = append(libbpf, fmt.Sprintf("bit %d", c.bitOff))
	}
	n := bits.OnesCount16(quest.kinds)
	text := func(k relo.Kind, i int) string {
		if k == relo.TargetTypeID {
			return k.String()
		}
		return fmt.Sprintf("%s %d", k, l.tb.values[int(c.at)+i])
	}
	for i, k := range quest.each() {
		if c.bad&(1<<k) != 0 {
			libbpf = append(libbpf, "no "+k.String())
		} else {
			libbpf = append(libbpf, text(k, i))
		}
		switch {
		case c.stuck&(1<<k) != 0:
			cilium = append(cilium, "no "+k.String())
		case c.cilium&(1<<k) != 0:
			cilium = append(cilium, text(k, n+i))
		}
	}
	if c.load.ok {
		libbpf = append(libbpf, c.load.String())
	}
	switch {
	case c.err:
		loaders = append(loaders, "libbpf gives up")
	case c.libbpf:
		loaders = append(loaders, "libbpf: "+strings.Join(libbpf, ", "))
	}
	if len(cilium) > 0 {
		loaders = append(loaders, "cilium/ebpf: "+strings.Join(cilium, ", "))
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

// decisions compares the decisions of each loader on all records about a name.
func (c *comparison) decisions(name int) (*Difference, error) {
	full, small := c.full, c.small
	for i := range full.set.objects {
		m := &full.set.objects[i]
		wf, ws := newWalk(full, m), newWalk(small, m)
		for r := range m.roots {
			root := &m.roots[r]
			if root.question < 0 || full.set.questions[root.question].name != name {
				continue
			}
			for _, rec := range root.records {
				if !c.meter.Step(1 + len(wf.candidates(int32(r))) + len(ws.candidates(int32(r)))) {
					return nil, nil
				}
				f, s := wf.step(m.stepOf[rec]), ws.step(m.stepOf[rec])
				if a, b := f.effect(), s.effect(); a != b {
					return &Difference{Object: m.name, Relocation: f.m.spec.String(), Full: a.String(), Minimized: b.String(), Order: true}, nil
				}
				if a, b := full.aya(m, m.stepOf[rec]), small.aya(m, m.stepOf[rec]); !a.Same(&b) {
					return &Difference{Object: m.name, Relocation: f.m.spec.String(), Full: "aya: " + a.String(), Minimized: b.String(), Order: true}, nil
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

func (d *Decision) effect() effect {
	e := effect{result: d.Result}
	switch {
	case d.Result == relo.Ambiguous:
		e.result = relo.Error // the order decides which comes first, and both end the load
	case d.Result == relo.Resolved:
		if e.load = d.m.new.load; d.m.spec.kind != relo.TargetTypeID {
			e.val = d.New
		}
	}
	return e
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
