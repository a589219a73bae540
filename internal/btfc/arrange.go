// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/btfgen/btfgen/internal/btfenc"
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
func (st *state) arranged(how int) []uint32 {
	order := make([]uint32, 0, len(st.types))
	last := make([]named, 0, len(st.types)) // what is to be sorted
	switch how {
	case arrangeFunctions:
		held := make([]uint32, st.numEnts+1) // prototypes in front of a function of theirs: position, from 1, by entity
		proto := uint32(0)                   // that before this type, if it is one
		for i, c := range st.types {
			w, e := st.content(c), uint32(0)
			switch btfenc.Kind(w[1] >> 24 & 0x7f) {
			case btfenc.KindFunc:
				if last = append(last, named{at: uint32(i), name: w[0]}); proto != 0 && w[2] == proto {
					held[proto] = uint32(i)
					order = order[:len(order)-1]
				}
			case btfenc.KindFuncProto:
				e = st.entity(c)
				fallthrough
			default:
				order = append(order, uint32(i))
			}
			proto = e
		}
		st.sortNames(last)
		for _, f := range last {
			if p := &held[st.content(st.types[f.at])[2]]; *p > 0 {
				order = append(order, *p-1)
				*p = 0
			}
			order = append(order, f.at)
		}
	case arrangeNames:
		for i, c := range st.types {
			if name := st.content(c)[0]; name == 0 {
				order = append(order, uint32(i))
			} else {
				last = append(last, named{at: uint32(i), name: name})
			}
		}
		st.sortNames(last)
		for _, t := range last {
			order = append(order, t.at)
		}
	default:
		for i := range uint32(len(st.types)) {
			order = append(order, i)
		}
	}
	return order
}

// named is the position of a type, with its name and eight bytes of that.
type named struct {
	bytes    uint64
	at, name uint32
}

// fewNames is up to how many are sorted by comparing them.
const fewNames = 1 << 10

// sortNames sorts types, which are in the order of their positions, by their names.
func (st *state) sortNames(all []named) {
	type group struct{ from, start, end uint32 } // their names are equal up to byte from
	var spare []named
	var todo []group
	for g := (group{end: uint32(len(all))}); ; {
		some := all[g.start:g.end]
		for i := range some {
			t := st.name(some[i].name)
			t = t[min(int(g.from), len(t)):]
			if len(t) >= 8 {
				some[i].bytes = binary.BigEndian.Uint64(t)
				continue
			}
			var b [8]byte
			copy(b[:], t)
			some[i].bytes = binary.BigEndian.Uint64(b[:])
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
				todo = append(todo, group{g.from + 8, g.start + uint32(i), g.start + uint32(i+n)})
			}
			i += n
		}
		if len(todo) == 0 {
			return
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
