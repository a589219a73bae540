// SPDX-License-Identifier: Apache-2.0

package core

import (
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Table is every outcome of a [Set] on one kernel. [Filler.Fill] makes it. Between two
// calls of Fill it is immutable and safe for many goroutines.
type Table struct {
	set    *Set
	kernel *Target
	cands  [][]candidate // indexed by number of the name
	rows   []outcomes    // indexed by question
	values []uint64      // values that outcomes refer to
}

// outcomes is the outcomes of one question for each loader, by candidate.
type outcomes struct {
	libbpf  []libbpfOutcome
	cilium  []ciliumOutcome
	aya     []ayaOutcome
	visible int // how many of the candidates libbpf considers
}

// resize makes room for n candidates, in the same memory if that is enough.
func (o *outcomes) resize(n int) {
	if n > cap(o.libbpf) {
		o.libbpf, o.cilium, o.aya = make([]libbpfOutcome, n), make([]ciliumOutcome, n), make([]ayaOutcome, n)
	}
	o.libbpf, o.cilium, o.aya = o.libbpf[:n], o.cilium[:n], o.aya[:n]
}

// libbpfOutcome is libbpf's result of one question for one candidate.
type libbpfOutcome struct {
	matches bool
	fails   bool // the candidate ends the load
	match
	load load
}

// match is where libbpf's rules, by which aya matches too, find the candidate's part.
type match struct {
	bad    uint16 // kinds that cannot be computed, bit set
	bitOff uint32 // bits from the start of the root to a field
	at     uint32 // index of the first value in Table.values, one for each kind of the question in ascending order
}

// ciliumOutcome is cilium/ebpf's result of one question for one candidate.
type ciliumOutcome struct {
	matches uint16 // kinds, bit set
	fails   uint16 // kinds that end the load, bit set
	at      uint32 // index of the first value in Table.values, one for each kind of the question in ascending order
}

// ayaOutcome is aya's result of one question for one candidate.
type ayaOutcome struct {
	matches bool
	fails   bool // the candidate ends the load
	match
	field      load   // the whole field, which aya loads
	enumerator uint64 // value of the enumerator that aya finds
}

// outcome is the result of one question for one candidate.
type outcome struct {
	libbpf libbpfOutcome
	cilium ciliumOutcome
	aya    ayaOutcome
}

// matters reports whether a loader matches the candidate or fails on it.
func (c *outcome) matters() bool {
	return c.libbpf.matches || c.libbpf.fails || c.aya.matches || c.cilium.matches|c.cilium.fails != 0
}

// Found is a candidate that some loader matches or fails on.
type Found struct {
	BTF    *btf.BTF   // vmlinux or a module
	Type   btf.TypeID // the candidate
	Needs  []Need     // valid during the call
	Hidden bool       // libbpf does not look at it, since it is a module's and vmlinux has the type
	kinds  uint16
}

// HasKind reports whether a relocation of kind k takes its value from the match.
func (m *Found) HasKind(k relo.Kind) bool { return m.kinds&(1<<k) != 0 }

// candidates returns the candidates of a question.
func (tb *Table) candidates(q int) []candidate { return tb.cands[tb.set.questions[q].name] }

// outcome returns the outcome of a question for the candidate at a place.
func (tb *Table) outcome(q, place int) (c outcome) {
	if r := &tb.rows[q]; place >= 0 && place < len(r.libbpf) {
		c = outcome{r.libbpf[place], r.cilium[place], r.aya[place]}
	}
	return c
}

// value returns libbpf's value of a kind for the candidate at a place. The kind is not among the bad ones.
func (tb *Table) value(q int, place int32, kind relo.Kind) (v value) {
	c := &tb.rows[q].libbpf[place]
	v.val = tb.values[int(c.at)+tb.set.questions[q].number(kind)]
	if kind == relo.ByteOffset {
		v.load = c.load
	}
	return v
}
