// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
)

// How the types of the parent are put in order before a kernel's are told from them. Tools that make BTF have changed the
// order more than once: what a kernel is told from may have been made by another.
const (
	arrangePlain     = 0 // as they are
	arrangeFunctions = 1 // functions last and by name, behind their prototypes
	arrangeNames     = 2 // types without a name first, the others by name
	numArranges      = 3
)

// arranged returns the positions of a state's types in an order. References have to be there for arrangeFunctions.
func (st *state) arranged(how int) ([]uint32, error) {
	order := make([]uint32, 0, len(st.types))
	// What is to be sorted: functions, which mostly are already, and from the end others.
	room := make([]named, len(st.types))
	funcs, rest := room[:0], len(room)
	switch how {
	case arrangeFunctions:
		held := make([]uint32, st.numEnts+1) // prototypes in front of a function of theirs: position, from 1, by entity
		proto := uint32(0)                   // that before this type, if it is one
		for i, c := range st.types {
			w, e := st.content(c), uint32(0)
			switch btf.Kind(w[1] >> 24 & 0x7f) {
			case btf.KindFunc:
				if funcs = append(funcs, named{at: uint32(i), name: w[0]}); proto != 0 && w[2] == proto {
					held[proto] = uint32(i)
					order = order[:len(order)-1]
				}
			case btf.KindFuncProto:
				e = st.entity(c)
				fallthrough
			default:
				order = append(order, uint32(i))
			}
			proto = e
		}
		if err := st.sortNames(funcs); err != nil {
			return nil, err
		}
		for _, f := range funcs {
			if p := &held[st.content(st.types[f.at])[2]]; *p > 0 {
				order = append(order, *p-1)
				*p = 0
			}
			order = append(order, f.at)
		}
	case arrangeNames:
		for i, c := range st.types {
			w := st.content(c)
			switch t := (named{at: uint32(i), name: w[0]}); {
			case t.name == 0:
				order = append(order, t.at)
			case btf.Kind(w[1]>>24&0x7f) == btf.KindFunc:
				funcs = append(funcs, t)
			default:
				rest--
				room[rest] = t
			}
		}
		others := room[rest:]
		slices.Reverse(others)
		if err := cmp.Or(st.sortNames(funcs), st.sortNames(others)); err != nil {
			return nil, err
		}
		order = st.merge(order, funcs, others)
	default:
		for i := range uint32(len(st.types)) {
			order = append(order, i)
		}
	}
	return order, nil
}

// named is the position of a type, with its name and eight bytes of that: the first, but in the middle of sorting.
type named struct {
	bytes    uint64
	at, name uint32
}

// compareNames compares types by their names, those of one name by their positions.
func (st *state) compareNames(a, b *named) int {
	c := cmp.Compare(a.bytes, b.bytes)
	if c == 0 && a.name != b.name {
		c = bytes.Compare(st.name(a.name), st.name(b.name))
	}
	return cmp.Or(c, cmp.Compare(a.at, b.at))
}

// merge appends the positions of types that are sorted by their names to order, in the order of both.
func (st *state) merge(order []uint32, a, b []named) []uint32 {
	for len(a) > 0 && len(b) > 0 {
		if st.compareNames(&a[0], &b[0]) < 0 {
			order, a = append(order, a[0].at), a[1:]
		} else {
			order, b = append(order, b[0].at), b[1:]
		}
	}
	for _, t := range a {
		order = append(order, t.at)
	}
	for _, t := range b {
		order = append(order, t.at)
	}
	return order
}

// eightBytes returns eight bytes of a name, from one on; behind its end there are zeros.
func (st *state) eightBytes(name, from uint32) uint64 {
	t := st.name(name)
	if t = t[min(int(from), len(t)):]; len(t) >= 8 {
		return binary.BigEndian.Uint64(t)
	}
	var b [8]byte
	copy(b[:], t)
	return binary.BigEndian.Uint64(b[:])
}

// longNames is how many bytes of names may have to be compared for each type that is sorted. In kernels they have 20.
const longNames = 64

var errLong = errors.New("names are too long to be sorted")

// fewNames is up to how many are sorted by comparing them.
const fewNames = 1 << 10

// sortNames sorts types, which are in the order of their positions, by their names.
func (st *state) sortNames(all []named) error {
	sorted, length := true, 0
	for i := range all {
		length += len(st.name(all[i].name))
		all[i].bytes = st.eightBytes(all[i].name, 0)
		sorted = sorted && (i == 0 || st.compareNames(&all[i-1], &all[i]) < 0)
	}
	if length > longNames*len(all) {
		return errLong
	}
	if sorted {
		return nil
	}
	type group struct {
		from, start, end uint32 // their names are equal up to byte from
		first            uint64 // eight bytes
	}
	var spare []named
	var todo []group
	for g := (group{end: uint32(len(all))}); ; {
		some := all[g.start:g.end]
		if g.from > 0 { // else they are there
			for i := range some {
				some[i].bytes = st.eightBytes(some[i].name, g.from)
			}
		}
		if len(some) < fewNames {
			slices.SortFunc(some, func(a, b named) int { return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.at, b.at)) })
		} else {
			if spare == nil {
				spare = make([]named, len(some))
			}
			radix(some, spare)
		}
		for i := 0; i < len(some); {
			n, more := 1, false
			for ; i+n < len(some) && some[i+n].bytes == some[i].bytes; n++ {
				more = more || some[i+n].name != some[i].name
			}
			if more && some[i].bytes&0xff != 0 { // the names go on
				first := g.first
				if g.from == 0 {
					first = some[i].bytes
				}
				todo = append(todo, group{g.from + 8, g.start + uint32(i), g.start + uint32(i+n), first})
			}
			i += n
		}
		if g.from > 0 {
			for i := range some {
				some[i].bytes = g.first
			}
		}
		if len(todo) == 0 {
			return nil
		}
		g, todo = todo[len(todo)-1], todo[:len(todo)-1]
	}
}

// radix sorts types by their bytes, and leaves equal ones as they are.
func radix(all, spare []named) {
	const digit = 11 // bits
	var counts [(64 + digit - 1) / digit][1 << digit]uint32
	for i := range all {
		for d := range counts {
			counts[d][all[i].bytes>>(digit*d)%(1<<digit)]++
		}
	}
	from, to := all, spare[:len(all)]
	for d := range counts {
		at := uint32(0)
		starts := &counts[d]
		for i, n := range starts {
			starts[i] = at
			at += n
		}
		for i := range from {
			p := &starts[from[i].bytes>>(digit*d)%(1<<digit)]
			to[*p] = from[i]
			*p++
		}
		from, to = to, from
	}
	if &from[0] != &all[0] {
		copy(all, from)
	}
}
