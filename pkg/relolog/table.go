package relolog

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// Table is what every distinct relocation of a [Set] makes of every candidate
// in one kernel: the function that all known loaders decide by. The zero value
// is ready for [Table.Fill], which reuses its memory. It is not safe for
// concurrent use.
type Table struct {
	set   *Set
	cands [][]cand // by name
	rows  [][]cell // by query, by candidate that it sees
	ids   [][]rawbtf.TypeID
	m     matcher
	found Match
	keep  []int // candidates that are left, while deciding
}

// cell is one query on one candidate.
type cell struct {
	cand   cand
	strict bool   // libbpf takes the candidate and matches it
	loose  bool   // some loader does
	err    bool   // libbpf gives up
	digest uint64 // of all that the query's kinds take from the match
	bitOff uint32
	value  [numKinds]uint64
}

// Match is a candidate that matches in the eyes of some loader, or that ends
// libbpf's search with an error.
type Match struct {
	BTF   *rawbtf.BTF   // of vmlinux or a module
	Type  rawbtf.TypeID // the candidate
	Needs []Need        // what the match depends upon, valid during the call
	kinds uint16
}

// Asks reports whether a relocation of kind k takes its value from the match.
func (m *Match) Asks(k Kind) bool { return m.kinds&(1<<k) != 0 }

// Fill matches every query of the set with every candidate in the kernel, and
// calls found, if not nil, for each match. The table refers to both set and
// kernel until the next Fill.
func (tb *Table) Fill(s *Set, t *Target, found func(*Match)) {
	tb.set = s
	tb.cands, tb.ids = t.find(s.index, len(s.names), tb.cands, tb.ids)
	if cap(tb.rows) < len(s.queries) {
		tb.rows = make([][]cell, len(s.queries))
	}
	tb.rows = tb.rows[:len(s.queries)]
	for i := range s.queries {
		q := &s.queries[i]
		row := tb.rows[i][:0]
		for _, c := range visible(tb.cands[q.name], q.spec.rootKind()) {
			row = append(row, cell{cand: c})
			tb.match(q, &row[len(row)-1], found)
		}
		tb.rows[i] = row
	}
}

// visible drops the types of modules where vmlinux has one of the kind.
func visible(all []cand, kind rawbtf.Kind) []cand {
	compat := false
	for i, c := range all {
		if c.view.module != "" && compat {
			return all[:i]
		}
		compat = compat || c.view.module == "" && kind.Compat(c.kind())
	}
	return all
}

func (tb *Table) match(q *query, c *cell, found func(*Match)) {
	m := &tb.m
	m.targ, m.loose = &c.cand.view.BTF, false
	if q.spec.rootKind().Compat(c.cand.kind()) {
		ok, err := m.match(q.spec, c.cand.id)
		c.strict, c.err = ok, err != nil
	}
	if c.loose = c.strict; !c.err && (!c.strict || q.spec.kind.IsType()) {
		m.loose = true
		c.loose, _ = m.match(q.spec, c.cand.id)
	}
	if c.loose {
		tb.values(q, c)
	}
	// A candidate that libbpf gives up on is to make it give up again.
	if found != nil && (c.loose || c.err) {
		tb.found = Match{BTF: m.targ, Type: c.cand.id, Needs: m.needs, kinds: q.kinds}
		found(&tb.found)
	}
}

// values takes from the match in tb.m what the query's kinds ask for.
func (tb *Table) values(q *query, c *cell) {
	s := &tb.m.out
	c.bitOff = s.bitOff
	h := fnv.New64a()
	put := func(vs ...uint64) {
		for _, v := range vs {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], v)
			h.Write(b[:])
		}
	}
	put(uint64(s.bitOff))
	for k := range numKinds {
		if q.kinds&(1<<k) == 0 {
			continue
		}
		s.kind = k
		v, err := s.calc()
		if err != nil {
			put(1)
			h.Write([]byte(err.Error()))
			continue
		}
		c.value[k] = v.val
		if k == KindTargetTypeID {
			continue // IDs are renumbered
		}
		put(0, v.val, uint64(v.size))
		if v.loads {
			t := s.btf.Type(v.typeID)
			put(uint64(t.Kind()))
			if t.Kind() == rawbtf.KindInt {
				put(uint64(t.IntEncoding()))
			}
		}
	}
	c.digest = h.Sum64()
}

// Same reports whether two tables of the same set hold the same outcomes, so
// that every loader that decides by them decides the same. Candidates that
// nothing matches do not count, nor how many there are of equal ones, except
// where a relocation asks for their type IDs. The error names the first
// relocation that differs.
func (tb *Table) Same(o *Table) error {
	for i := range tb.rows {
		q := &tb.set.queries[i]
		if a, b := outcomes(q, tb.rows[i]), outcomes(q, o.rows[i]); !slices.Equal(a, b) {
			return fmt.Errorf("%s: %d outcomes, not the same as the other's %d", q.spec, len(a), len(b))
		}
	}
	return nil
}

// outcome key: digest and the three flags.
type outcomeKey struct {
	digest uint64
	flags  uint8
}

func outcomes(q *query, row []cell) []outcomeKey {
	var keys []outcomeKey
	for i := range row {
		c := &row[i]
		k := outcomeKey{digest: c.digest}
		if c.strict {
			k.flags |= 1
		}
		if c.loose {
			k.flags |= 2
		}
		if c.err {
			k.flags |= 4
		}
		if k.flags != 0 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b outcomeKey) int {
		switch {
		case a.digest < b.digest:
			return -1
		case a.digest > b.digest:
			return 1
		}
		return int(a.flags) - int(b.flags)
	})
	if q.kinds&(1<<KindTargetTypeID) == 0 {
		keys = slices.Compact(keys)
	}
	return keys
}

// String returns the spec as a relocation: "byte_off struct task_struct.mm.pgd".
func (s *spec) String() string {
	out := s.kind.String() + " " + typeName(s.btf.Type(s.root))
	switch p := s.path(); {
	case p == "":
		return out
	case s.kind.IsEnumval():
		return out + "::" + p
	case p[0] == '[':
		return out + p
	default:
		return out + "." + p
	}
}

// Decision is what a loader with libbpf's rules makes of one distinct
// relocation of one object.
type Decision struct {
	Object *Object
	Kind   Kind
	Result Result
	spec   *spec
}

// Relo names what the relocation asks for: "byte_off struct task_struct.mm.pgd".
func (d *Decision) Relo() string { return d.spec.String() }

// Decide gives yield the decision on every distinct relocation of every
// object of the set that asks something of the kernel, or that no loader
// accepts.
func (tb *Table) Decide(yield func(Decision)) {
	left := make(map[rawbtf.TypeID][]int) // candidates by root, as narrowed so far
	for i := range tb.set.objects {
		o := &tb.set.objects[i]
		clear(left)
		for j, s := range o.specs {
			r := Error
			if q := o.query[j]; q >= 0 {
				r = tb.decide(s, tb.rows[q], left)
			} else if s.err == nil && s.kind == KindLocalTypeID {
				continue
			}
			yield(Decision{o.Object, s.kind, r, s})
		}
	}
}

func (tb *Table) decide(s *spec, row []cell, left map[rawbtf.TypeID][]int) Result {
	if _, err := s.calc(); err != nil {
		return Error
	}
	list, ok := left[s.root]
	if !ok {
		for i := range row {
			if s.rootKind().Compat(row[i].cand.kind()) {
				list = append(list, i)
			}
		}
		left[s.root] = list
	}
	keep := tb.keep[:0]
	var first *cell
	for _, i := range list {
		c := &row[i]
		switch {
		case c.err:
			return Error
		case !c.strict:
			continue
		case first == nil:
			first = c
		case c.bitOff != first.bitOff || c.value[s.kind] != first.value[s.kind]:
			return Ambiguous
		}
		keep = append(keep, i)
	}
	tb.keep = keep
	switch {
	case len(keep) > 0:
		left[s.root] = append([]int(nil), keep...)
		return Resolved
	case s.kind.IsExistence() || s.kind.IsType():
		return Absent
	}
	return Poisoned
}
