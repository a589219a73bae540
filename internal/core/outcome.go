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
	cands  [][]candidate // by name
	rows   [][]outcome   // by question, by candidate
	libbpf []int         // by question: how many of the candidates libbpf considers
	values []uint64      // of outcomes
}

// outcome is the result of one question for one candidate.
type outcome struct {
	libbpf bool   // libbpf takes the candidate and matches it
	err    bool   // libbpf fails on it
	aya    bool   // aya takes the candidate and matches it, see aya.go
	cilium uint16 // kinds that cilium/ebpf matches, bit set
	fatal  uint16 // kinds for which cilium/ebpf fails, bit set
	at     uint32 // in Table.values: libbpf's and then cilium/ebpf's, one for each kind of the question in ascending order

	// Of a match of libbpf or aya:
	bad      uint16 // kinds that cannot be computed, bit set
	bitOff   uint32 // of a field, from the start of the root
	load     load
	field    load   // of the whole field, which aya loads
	ayaValue uint64 // of the enumerator that aya finds
}

// matters reports whether a loader matches the candidate or fails on it.
func (c *outcome) matters() bool { return c.libbpf || c.err || c.aya || c.cilium|c.fatal != 0 }

// Found is a candidate that some loader matches or fails on.
type Found struct {
	BTF    *btf.BTF   // of vmlinux or a module
	Type   btf.TypeID // the candidate
	Needs  []Need     // valid during the call
	Hidden bool       // libbpf does not look at it, since it is a module's and vmlinux has the type
	kinds  uint16
}

// HasKind reports whether a relocation of kind k takes its value from the match.
func (m *Found) HasKind(k relo.Kind) bool { return m.kinds&(1<<k) != 0 }

// value returns the value of a kind, which is not among the bad ones.
func (tb *Table) value(q *question, c *outcome, kind relo.Kind) (v value) {
	v.val = tb.values[int(c.at)+q.number(kind)]
	if kind == relo.ByteOffset {
		v.load = c.load
	}
	return v
}
