// SPDX-License-Identifier: Apache-2.0

package btfc

import "slices"

// known indexes a parent's state for an encoder.
type known struct {
	names    map[string]uint32 // the first number of each
	numNames int
	entities map[ordinal]uint32 // of the parent's types
	in       []uint32           // their positions in its list, by entity, from 1
}

// ordinal numbers the types of one hash.
type ordinal struct {
	hash uint64
	n    uint32
}

// newKnown returns the index of a state.
func newKnown(st *state) *known {
	k := &known{names: make(map[string]uint32, st.names.n), numNames: st.names.n, in: make([]uint32, st.numEnts+1)}
	for i := range uint32(st.names.n) {
		t := st.names.at(i)
		t = t[:len(t)-1]
		if _, ok := k.names[string(t)]; !ok {
			k.names[string(t)] = i
		}
	}
	contents := make([]uint32, st.numEnts+1) // by entity
	for i, c := range st.types {
		e := st.entities[i]
		contents[e], k.in[e] = c, uint32(i)+1
	}
	k.entities = make(map[ordinal]uint32, len(st.types))
	ordinals(st.entities, st.numEnts, func(e uint32) []uint32 { return st.content(contents[e]) }, func(o ordinal, e uint32) { k.entities[o] = e })
	return k
}

// mix adds a number to a hash.
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0xff51afd7ed558ccd
	return h ^ h>>32
}

// hasher hashes the names of types or, without a name, their contents. Types are numbered from 1.
type hasher struct {
	content func(uint32) []uint32
	hash    []uint64 // 0 before it is computed, 1 meanwhile
	named   map[uint64]int
}

const hashDepth = 200 // of anonymous types in each other

func nameHash(w []uint32) uint64 { return mix(uint64(kindOf(w)), uint64(w[0])) }

// ordinals yields the types in order, which are up to last, each with its ordinal.
func ordinals(order []uint32, last uint32, content func(uint32) []uint32, yield func(ordinal, uint32)) {
	h := &hasher{content: content, hash: make([]uint64, last+1), named: make(map[uint64]int, len(order))}
	for _, t := range order {
		if w := content(t); w[0] != 0 {
			h.named[nameHash(w)]++
		}
	}
	count := make(map[uint64]uint32, len(order))
	for _, t := range order {
		x := h.of(t, 0)
		yield(ordinal{x, count[x]}, t)
		count[x]++
	}
}

func (h *hasher) of(t uint32, depth int) uint64 {
	switch {
	case t == 0:
		return 0
	case h.hash[t] != 0:
		return h.hash[t]
	case depth > hashDepth:
		return 1
	}
	w := h.content(t)
	x := nameHash(w)
	switch {
	case w[0] == 0:
		h.hash[t] = 1
		sum := slices.Clone(w)
		eachRef(w, func(i int) { sum[i] = uint32(h.of(w[i], depth+1)) })
		for _, v := range sum {
			x = mix(x, uint64(v))
		}
	case h.named[x] > 1: // several types of the name
		x = mix(x, uint64(w[1]))
		eachName(w, func(i int) { x = mix(x, uint64(w[i])) })
	}
	h.hash[t] = x
	return x
}

// matching says what of a chunk its parent has.
type matching struct {
	entity  []uint32 // by type ID
	items   []item   // by type ID, from 1
	numEnts uint32
}

// match finds the types of p that the parent has, and replaces the type IDs in p with entities. If the parent is the kernel of these
// modules, its types come first.
func match(parent *state, p *parsed, kernel bool) *matching {
	n := len(p.types) - 1
	m := &matching{entity: make([]uint32, n+1), items: make([]item, n), numEnts: parent.numEnts}
	if kernel && n >= len(parent.types) {
		copy(m.entity[1:], parent.entities)
	} else {
		order := make([]uint32, n)
		for i := range order {
			order[i] = uint32(i) + 1
		}
		ordinals(order, uint32(n), func(id uint32) []uint32 { return p.types[id] }, func(o ordinal, id uint32) { m.entity[id] = p.known.entities[o] })
	}
	for id := 1; id <= n; id++ { // as a reader numbers them
		if m.entity[id] == 0 {
			m.numEnts++
			m.entity[id] = m.numEnts
			m.items[id-1].kind = runNext
		}
	}
	for i, t := range p.types[1:] {
		eachRef(t, func(i int) { t[i] = m.entity[t[i]] })
		if it := &m.items[i]; it.kind != runNext {
			it.at = p.known.in[m.entity[i+1]] - 1
			if !slices.Equal(parent.content(parent.types[it.at]), t) {
				it.kind = runChanged
			}
		}
	}
	return m
}
