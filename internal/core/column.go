// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/pkg/relo"
)

// column is a candidate that a loader matches or fails on.
type column struct {
	place int    // among the candidates of its name, -1 for one that no loader matches
	key   string // what loaders see of it; equal columns have equal ids
	ids   bool   // a relocation uses the type ID
}

// inModules reports whether a module has a type of the name.
func (tb *Table) inModules(name int) bool {
	all := tb.cands[name]
	return len(all) > 0 && all[len(all)-1].view.module != ""
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
