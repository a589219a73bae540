package btfc

import (
	"bytes"
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

// arranged returns the positions of a state's types in an order.
func (st *state) arranged(how int) []uint32 {
	order := make([]uint32, 0, len(st.types))
	var named []uint32
	kind := func(i uint32) btfenc.Kind { return btfenc.Kind(st.content(st.types[i])[1] >> 24 & 0x7f) }
	switch how {
	case arrangeFunctions:
		held := make(map[uint32]uint32) // prototypes in front of a function of theirs: position by entity
		for i := range uint32(len(st.types)) {
			switch k := kind(i); {
			case k == btfenc.KindFunc:
				named = append(named, i)
			case k == btfenc.KindFuncProto && int(i)+1 < len(st.types) && kind(i+1) == btfenc.KindFunc &&
				st.content(st.types[i+1])[2] == st.entity(st.types[i]):
				held[st.entity(st.types[i])] = i
			default:
				order = append(order, i)
			}
		}
		for _, i := range st.byName(named) {
			proto := st.content(st.types[i])[2]
			if p, ok := held[proto]; ok {
				order = append(order, p)
				delete(held, proto)
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
	type named struct {
		begin uint64 // the name's first bytes
		at    uint32
	}
	all := make([]named, len(list))
	name := func(at uint32) []byte { return st.name(st.content(st.types[at])[0]) }
	for i, at := range list {
		var b [8]byte
		copy(b[:], name(at))
		all[i] = named{binary.BigEndian.Uint64(b[:]), at}
	}
	slices.SortFunc(all, func(a, b named) int {
		if a.begin != b.begin {
			return cmp.Compare(a.begin, b.begin)
		}
		return cmp.Or(bytes.Compare(name(a.at), name(b.at)), cmp.Compare(a.at, b.at))
	})
	for i := range all {
		list[i] = all[i].at
	}
	return list
}
