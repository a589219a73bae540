// SPDX-License-Identifier: Apache-2.0

package btfc

import "slices"

// known indexes a parent's state for an encoder.
type known struct {
	names    map[string]uint32 // the first number of each
	numNames int
	entities map[ordinal]uint32
	contents map[uint64]uint32 // one content by its hash
	in       []uint32          // position in the parent's types of each entity, from 1
}

// ordinal numbers the types of one hash.
type ordinal struct {
	hash uint64
	n    uint32
}

// newKnown returns the index of a state.
func newKnown(st *state) *known {
	k := &known{names: make(map[string]uint32, st.names.n), numNames: st.names.n, contents: make(map[uint64]uint32, st.contents.n)}
	for i := range uint32(st.names.n) {
		t := st.names.at(i)
		t = t[:len(t)-1]
		if _, ok := k.names[string(t)]; !ok {
			k.names[string(t)] = i
		}
	}
	latest := make([]uint32, st.numEnts+1) // content of each entity: the parent's, or else the last one
	for c := range uint32(st.contents.n) {
		latest[st.entity(c)] = c
		k.contents[contentHash(st.entity(c), st.content(c))] = c
	}
	k.in = make([]uint32, st.numEnts+1)
	order := make([]uint32, 0, st.numEnts)
	for i, c := range st.types {
		e := st.entity(c)
		latest[e] = c
		k.in[e] = uint32(i) + 1
		order = append(order, e)
	}
	for e := uint32(1); e <= st.numEnts; e++ {
		if k.in[e] == 0 {
			order = append(order, e)
		}
	}
	h := newHasher(order, len(st.types), func(e uint32) []uint32 { return st.content(latest[e]) })
	k.entities = make(map[ordinal]uint32, len(order))
	h.ordinals(order, func(o ordinal, e uint32) { k.entities[o] = e })
	return k
}

// mix adds a number to a hash.
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0xff51afd7ed558ccd
	return h ^ h>>32
}

func contentHash(entity uint32, words []uint32) uint64 {
	h := mix(uint64(len(words)), uint64(entity))
	for _, w := range words {
		h = mix(h, uint64(w))
	}
	return h
}

// hasher hashes the names of types or, without a name, their contents. Types are numbered from 1.
type hasher struct {
	content func(uint32) []uint32
	hash    []uint64 // 0 before it is computed, 1 meanwhile
	named   map[uint64]int
}

const hashDepth = 200 // of anonymous types in each other

// newHasher returns a hasher of types. The kernel has the first of order, and its ancestors had the others.
func newHasher(order []uint32, there int, content func(uint32) []uint32) *hasher {
	h := &hasher{content: content, hash: make([]uint64, len(order)+1), named: make(map[uint64]int)}
	for _, t := range order[:there] {
		if w := content(t); w[0] != 0 {
			h.named[nameHash(w)]++
		}
	}
	return h
}

func nameHash(w []uint32) uint64 { return mix(uint64(kindOf(w)), uint64(w[0])) }

// ordinals gives each type with its ordinal.
func (h *hasher) ordinals(order []uint32, yield func(ordinal, uint32)) {
	count := make(map[uint64]uint32)
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
	fresh   []bool   // by type ID: whether the type has a new content
	items   []item   // by type ID, from 1
	numEnts uint32
}

// match finds the types of p that the parent has. If that is the kernel of these modules, its types come first.
func match(parent *state, p *parsed, kernel bool) *matching {
	k := p.known
	n := len(p.types) - 1
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i) + 1
	}
	m := &matching{entity: make([]uint32, n+1), fresh: make([]bool, n+1), items: make([]item, n), numEnts: parent.numEnts}
	if kernel && n >= len(parent.types) {
		for i, c := range parent.types {
			m.entity[i+1] = parent.entity(c)
		}
	} else {
		h := newHasher(order, n, func(id uint32) []uint32 { return p.types[id] })
		h.ordinals(order, func(o ordinal, id uint32) { m.entity[id] = k.entities[o] })
	}
	buf := make([]uint32, 0, 64)
	content := func(id uint32) (uint32, bool) {
		t := p.types[id]
		buf = append(buf[:0], t...)
		known := true
		eachRef(t, func(i int) {
			buf[i] = m.entity[t[i]]
			known = known && (t[i] == 0 || buf[i] != 0)
		})
		if !known {
			return 0, false
		}
		e := m.entity[id]
		c, ok := k.contents[contentHash(e, buf)]
		return c, ok && parent.entity(c) == e && slices.Equal(parent.content(c), buf)
	}
	// An entity that only earlier ancestors have is used again only if its content is one of theirs, and so are those it refers to.
	for again := true; again; {
		again = false
		for _, id := range order {
			if e := m.entity[id]; e != 0 && k.in[e] == 0 {
				if _, ok := content(id); !ok {
					m.entity[id] = 0
					again = true
				}
			}
		}
	}
	for _, id := range order {
		e := m.entity[id]
		if e == 0 {
			m.items[id-1] = item{kind: runNext}
			m.fresh[id] = true
			continue
		}
		c, ok := content(id)
		switch {
		case !ok:
			m.items[id-1] = item{runChanged, k.in[e] - 1}
			m.fresh[id] = true
		case k.in[e] > 0 && parent.types[k.in[e]-1] == c:
			m.items[id-1] = item{runCopy, k.in[e] - 1}
		default:
			m.items[id-1] = item{runOld, c}
		}
	}
	for _, id := range order { // as a reader numbers them
		if m.entity[id] == 0 {
			m.numEnts++
			m.entity[id] = m.numEnts
		}
	}
	return m
}
