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
	var named []uint32
	switch how {
	case arrangeFunctions:
		held := make([]uint32, st.numEnts+1) // prototypes in front of a function of theirs: position, from 1, by entity
		proto := uint32(0)                   // that before this type, if it is one
		for i, c := range st.types {
			w, e := st.content(c), uint32(0)
			switch btfenc.Kind(w[1] >> 24 & 0x7f) {
			case btfenc.KindFunc:
				if named = append(named, uint32(i)); proto != 0 && w[2] == proto {
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
		for _, i := range st.byName(named) {
			if p := &held[st.content(st.types[i])[2]]; *p > 0 {
				order = append(order, *p-1)
				*p = 0
			}
			order = append(order, i)
		}
	case arrangeNames:
		for i, c := range st.types {
			if st.content(c)[0] == 0 {
				order = append(order, uint32(i))
			} else {
				named = append(named, uint32(i))
			}
		}
		order = append(order, st.byName(named)...)
	default:
		for i := range uint32(len(st.types)) {
			order = append(order, i)
		}
	}
	return order
}

// byName sorts positions of types by their names, those of one name as they are.
func (st *state) byName(list []uint32) []uint32 {
	all := make([]named, len(list))
	for i, at := range list {
		all[i] = named{at: at, name: st.content(st.types[at])[0]}
	}
	st.sortNames(all, make([]named, len(all)))
	for i := range all {
		list[i] = all[i].at
	}
	return list
}

// named is the position of a type, with its name and eight bytes of that.
type named struct {
	bytes    uint64
	at, name uint32
}

// sortNames sorts types by their names. spare has room for as many.
func (st *state) sortNames(all, spare []named) {
	type group struct {
		from int // their names are equal up to this byte
		all  []named
	}
	for todo := []group{{0, all}}; len(todo) > 0; {
		g := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for i := range g.all {
			t := st.name(g.all[i].name)
			var b [8]byte
			copy(b[:], t[min(g.from, len(t)):])
			g.all[i].bytes = binary.BigEndian.Uint64(b[:])
		}
		if len(g.all) < 1<<10 {
			slices.SortFunc(g.all, func(a, b named) int { return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.at, b.at)) })
		} else {
			radix(g.all, spare)
		}
		for l := g.all; len(l) > 0; {
			n, more := 1, false
			for ; n < len(l) && l[n].bytes == l[0].bytes; n++ {
				more = more || l[n].name != l[0].name
			}
			if more && l[0].bytes&0xff != 0 { // the names go on
				todo = append(todo, group{g.from + 8, l[:n]})
			}
			l = l[n:]
		}
	}
}

// radix sorts types by their bytes, and leaves equal ones as they are.
func radix(all, spare []named) {
	from, to := all, spare[:len(all)]
	for shift := 0; shift < 64; shift += 8 {
		var starts [256]int
		for i := range from {
			starts[byte(from[i].bytes>>shift)]++
		}
		if starts[byte(from[0].bytes>>shift)] == len(from) {
			continue
		}
		at := 0
		for i, n := range starts {
			starts[i] = at
			at += n
		}
		for i := range from {
			b := byte(from[i].bytes >> shift)
			to[starts[b]] = from[i]
			starts[b]++
		}
		from, to = to, from
	}
	if &from[0] != &all[0] {
		copy(all, from)
	}
}
