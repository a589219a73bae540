// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/pkg/relo"
)

// column is a candidate that a loader matches or fails on.
type column struct {
	place int    // among the candidates of its name, -1 for one that no loader matches
	key   string // the candidate as loaders see it; equal columns have equal ids
	ids   bool   // a relocation uses the type ID
}

// inModules reports whether a module has a type of the name.
func (tb *Table) inModules(name int) bool {
	all := tb.cands[name]
	return len(all) > 0 && all[len(all)-1].view.module != ""
}

// appendOutcome appends an encoding that is equal only for equal outcomes.
func (tb *Table) appendOutcome(b []byte, q *question, c *outcome) []byte {
	flags := byte(0)
	for i, f := range []bool{c.libbpf.matches, c.libbpf.fails, c.aya.matches, c.aya.fails} {
		if f {
			flags |= 1 << i
		}
	}
	if b = append(b, flags); !c.matters() {
		return b
	}
	le := binary.LittleEndian
	if b = c.libbpf.load.append(b); c.aya.matches {
		b = le.AppendUint64(c.aya.field.append(b), c.aya.enumerator)
	}
	// If both loaders match, their matches are equal.
	m := c.libbpf.match
	if !c.libbpf.matches {
		m = c.aya.match
	}
	b = le.AppendUint32(le.AppendUint16(b, m.bad), m.bitOff)
	b = le.AppendUint16(le.AppendUint16(b, c.cilium.matches), c.cilium.fails)
	for i, k := range q.each() {
		if k == relo.TargetTypeID {
			continue
		}
		if c.libbpf.matches || c.aya.matches {
			b = le.AppendUint64(b, tb.values[int(m.at)+i])
		}
		if c.cilium.matches&(1<<k) != 0 {
			b = le.AppendUint64(b, tb.values[int(c.cilium.at)+i])
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

// without returns the columns of l that are not in o. Of columns with type IDs, it
// also returns those that are in o less often.
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
	keys []string // sorted keys of the columns
}

// widths returns the widths of a question in the order of the columns, for each place of the field.
func (tb *Table) widths(q int, columns []column) map[fieldPlace][]width {
	out, seen := make(map[fieldPlace][]width), make(map[string]bool)
	for _, col := range columns {
		o := tb.outcome(q, col.place).libbpf
		if seen[col.key] || !o.matches || o.fails || o.bad&(1<<relo.ByteOffset) != 0 {
			continue
		}
		seen[col.key] = true
		p := fieldPlace{o.bitOff, tb.value(q, int32(col.place), relo.ByteOffset).val}
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
	var libbpf, cilium []string
	if quest.spec.kind.IsField() {
		libbpf = append(libbpf, fmt.Sprintf("bit %d", c.libbpf.bitOff))
	}
	for i, k := range quest.each() {
		if c.libbpf.matches {
			libbpf = append(libbpf, tb.kindText(k, c.libbpf.bad, int(c.libbpf.at)+i))
		}
		if (c.cilium.matches|c.cilium.fails)&(1<<k) != 0 {
			cilium = append(cilium, tb.kindText(k, c.cilium.fails, int(c.cilium.at)+i))
		}
	}
	if c.libbpf.load.ok {
		libbpf = append(libbpf, c.libbpf.load.String())
	}
	var loaders []string
	switch {
	case c.libbpf.fails:
		loaders = append(loaders, "libbpf gives up")
	case c.libbpf.matches:
		loaders = append(loaders, "libbpf: "+strings.Join(libbpf, ", "))
	}
	if len(cilium) > 0 {
		loaders = append(loaders, "cilium/ebpf: "+strings.Join(cilium, ", "))
	}
	if c.aya.matches {
		loaders = append(loaders, "aya matches")
	}
	return strings.Join(loaders, "; ")
}

// kindText describes the value of a kind at a place of the table's values. IDs of types are not compared.
func (tb *Table) kindText(k relo.Kind, bad uint16, at int) string {
	switch {
	case bad&(1<<k) != 0:
		return "no " + k.String()
	case k == relo.TargetTypeID:
		return k.String()
	}
	return fmt.Sprintf("%s %d", k, tb.values[at])
}
