// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
)

// known is what a writer looks up in a parent's state.
type known struct {
	names    map[string]uint32 // the first number of each
	numNames int
	entities map[ordinal]uint32
	contents map[uint64]uint32 // one content by its hash
	latest   []uint32          // content of each entity: the parent's, or else the last one
	in       []uint32          // position in the parent's types of each entity, from 1
}

// ordinal tells types of one hash from each other.
type ordinal struct {
	hash uint64
	n    uint32
}

// newKnown gathers what is known of a state.
func newKnown(st *state) *known {
	k := &known{names: make(map[string]uint32, st.numNames), numNames: st.numNames, contents: make(map[uint64]uint32, st.numContents)}
	for i := range uint32(st.numNames) {
		t := st.name(i)
		t = t[:len(t)-1]
		if _, ok := k.names[string(t)]; !ok {
			k.names[string(t)] = i
		}
	}
	k.latest = make([]uint32, st.numEnts+1)
	k.in = make([]uint32, st.numEnts+1)
	for c := range uint32(st.numContents) {
		k.latest[st.entity(c)] = c
		k.contents[contentHash(st.entity(c), st.content(c))] = c
	}
	order := make([]uint32, 0, st.numEnts)
	for i, c := range st.types {
		e := st.entity(c)
		k.latest[e] = c
		k.in[e] = uint32(i) + 1
		order = append(order, e)
	}
	for e := uint32(1); e <= st.numEnts; e++ {
		if k.in[e] == 0 {
			order = append(order, e)
		}
	}
	h := newHasher(int(st.numEnts), len(st.types), order, func(e uint32) []uint32 { return st.content(k.latest[e]) })
	k.entities = make(map[ordinal]uint32, len(order))
	h.ordinals(order, func(o ordinal, e uint32) {
		if _, ok := k.entities[o]; !ok {
			k.entities[o] = e
		}
	})
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

// hasher gives types a hash of what they are called or, where they have no name, of what they consist of. Types are
// numbered from 1.
type hasher struct {
	content func(uint32) []uint32
	hash    []uint64
	state   []uint8 // hashDone, hashBusy
	named   map[uint64]int
}

const (
	hashBusy = 1
	hashDone = 2

	hashDepth = 200 // of anonymous types in each other
)

// newHasher makes a hasher of n types, of which only the first of order are there.
func newHasher(n, there int, order []uint32, content func(uint32) []uint32) *hasher {
	h := &hasher{content: content, hash: make([]uint64, n+1), state: make([]uint8, n+1), named: make(map[uint64]int)}
	for _, t := range order[:there] {
		if w := content(t); w[0] != 0 {
			h.named[nameHash(w)]++
		}
	}
	return h
}

func nameHash(w []uint32) uint64 { return mix(uint64(w[1]>>24&0x7f), uint64(w[0])) }

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
	case h.state[t] == hashDone:
		return h.hash[t]
	case h.state[t] == hashBusy || depth > hashDepth:
		return 1
	}
	w := h.content(t)
	x := nameHash(w)
	if w[0] != 0 {
		if h.named[x] > 1 { // it takes more to tell them apart
			x = mix(x, uint64(w[1]))
			for i, word := range words(w) {
				if word == btf.Name {
					x = mix(x, uint64(w[i]))
				}
			}
		}
	} else {
		h.state[t] = hashBusy
		x = mix(x, uint64(w[1]))
		for i, word := range words(w) {
			if word == btf.Ref {
				x = mix(x, h.of(w[i], depth+1))
			} else {
				x = mix(x, uint64(w[i]))
			}
		}
	}
	h.hash[t], h.state[t] = x, hashDone
	return x
}

// words yields what the words of a type's record are.
func words(w []uint32) func(func(int, btf.Word) bool) {
	return func(yield func(int, btf.Word) bool) {
		shape := btf.Kind(w[1] >> 24 & 0x7f).Shape()
		if !yield(0, btf.Name) || !yield(2, shape.Third) {
			return
		}
		for i := 3; i < len(w); i++ {
			word := btf.Data
			if j := i - 3 - len(shape.Extra); j < 0 {
				word = shape.Extra[i-3]
			} else if len(shape.Elem) > 0 {
				word = shape.Elem[j%len(shape.Elem)]
			}
			if !yield(i, word) {
				return
			}
		}
	}
}

// parsed is BTF taken apart.
type parsed struct {
	rest    []byte
	types   [][]uint32 // by ID, nil for void. Names are numbers, references are IDs
	strings []uint32   // names
	names   []uint32   // by their offsets, numbers from 1
	fresh   [][]byte   // the text of names that the parent does not know
	own     map[string]uint32
	used    []bool // of fresh: written
}

// parse takes BTF apart. It fails with errModel if that cannot be done.
func parse(k *known, blob []byte) (p *parsed, err error) {
	p = &parsed{types: [][]uint32{nil}, own: make(map[string]uint32)}
	if p.rest, p.strings, p.names, err = p.take(k, blob, 1, nil); err != nil {
		return nil, err
	}
	if len(p.strings) == 0 || p.strings[0] != 0 {
		return nil, errModel
	}
	p.used = make([]bool, len(p.fresh))
	return p, nil
}

// take appends the types of BTF, of which so many IDs and names belong to what it is split from. It returns what is neither types nor
// strings, the names in the order of its strings, and all by their offsets in these, from 1.
func (p *parsed) take(k *known, blob []byte, base int, baseNames []uint32) (rest []byte, list, names []uint32, err error) {
	s, err := parseSections(blob, uint64(len(blob)))
	if err != nil {
		return nil, nil, nil, errModel
	}
	a, b := s.types, s.strings
	if b.start < a.start {
		a, b = b, a
	}
	rest = slices.Concat(blob[:a.start], blob[a.end:b.start], blob[b.end:])
	strs := blob[s.strings.start:s.strings.end]
	if len(strs) > 0 && strs[len(strs)-1] != 0 {
		return nil, nil, nil, errModel
	}
	names = make([]uint32, len(strs)) // number by offset, from 1
	seen := make(map[uint32]bool)
	for off := 0; off < len(strs); {
		t := strs[off:]
		t = t[:bytes.IndexByte(t, 0)]
		n, ok := k.names[string(t)]
		if !ok {
			if n, ok = p.own[string(t)]; !ok {
				n = uint32(k.numNames + len(p.fresh))
				p.own[string(t)] = n
				p.fresh = append(p.fresh, t)
			}
		}
		if seen[n] {
			return nil, nil, nil, errModel
		}
		seen[n] = true
		names[off] = n + 1
		list = append(list, n)
		off += len(t) + 1
	}
	return rest, list, names, p.parseTypes(blob[s.types.start:s.types.end], s, base, baseNames, names)
}

func (p *parsed) parseTypes(b []byte, s sections, base int, baseNames, names []uint32) error {
	all := make([]uint32, len(b)/4)
	for i := range all {
		all[i] = s.order.Uint32(b[4*i:])
	}
	first := len(p.types)
	for len(all) > 0 {
		if len(all) < 3 {
			return errModel
		}
		k := btf.Kind(all[1] >> 24 & 0x7f)
		if k == btf.KindVoid || int(k) >= btf.NumKinds {
			return errModel
		}
		shape := k.Shape()
		count := uint64(all[1] & 0xffffff)
		n := 3 + uint64(len(shape.Extra)) + uint64(len(shape.Elem))*count
		if n > uint64(len(all)) || !hasCount(k) && count > 0 || nameless(k) && all[0] != 0 || all[1]&0xff000000 != uint32(byte(all[1]>>24))<<24 ||
			shape.Third == btf.Data && all[2] != 0 {
			return errModel
		}
		t := all[:n:n]
		all = all[n:]
		p.types = append(p.types, t)
	}
	for _, t := range p.types[first:] {
		for i, word := range words(t) {
			switch word {
			case btf.Name:
				from, at := baseNames, int(t[i])
				if at >= len(from) {
					from, at = names, at-len(from)
				}
				if at >= len(from) || from[at] == 0 {
					return errModel
				}
				t[i] = from[at] - 1
			case btf.Ref:
				if id := int(t[i]); id >= base {
					if id = id - base + first; id >= len(p.types) {
						return errModel
					}
					t[i] = uint32(id)
				}
			}
		}
	}
	return nil
}

// matching says what of a kernel the parent has.
type matching struct {
	entity  []uint32 // by type ID
	fresh   []bool   // by type ID: has a new content
	items   []item   // by type ID, from 1
	numEnts uint32
}

// match finds out what of a kernel the parent has. The first types are those that the parent begins with, so many as base.
func match(parent *state, k *known, p *parsed, base int) *matching {
	n := len(p.types) - 1
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i) + 1
	}
	m := &matching{entity: make([]uint32, n+1), fresh: make([]bool, n+1), items: make([]item, n), numEnts: parent.numEnts}
	h := newHasher(n, n, order, func(id uint32) []uint32 { return p.types[id] })
	h.ordinals(order, func(o ordinal, id uint32) {
		if e := k.entities[o]; int(k.in[e]) > base || k.in[e] == 0 {
			m.entity[id] = e
		}
	})
	for id := uint32(1); int(id) <= base; id++ {
		m.entity[id] = parent.entity(parent.types[id-1])
		m.items[id-1] = item{runCopy, id - 1}
	}
	first := uint32(base) + 1
	// What only earlier ancestors have can be taken up again only as it was. That of its parts which cannot is new.
	buf := make([]uint32, 0, 64)
	content := func(id uint32) (uint32, bool) {
		t := p.types[id]
		buf = append(buf[:0], t...)
		for i, word := range words(t) {
			if word == btf.Ref {
				if buf[i] = m.entity[t[i]]; t[i] != 0 && buf[i] == 0 {
					return 0, false
				}
			}
		}
		e := m.entity[id]
		c, ok := k.contents[contentHash(e, buf)]
		return c, ok && parent.entity(c) == e && slices.Equal(parent.content(c), buf)
	}
	for again := true; again; {
		again = false
		for id := first; int(id) <= n; id++ {
			if e := m.entity[id]; e != 0 && k.in[e] == 0 {
				if _, ok := content(id); !ok {
					m.entity[id] = 0
					again = true
				}
			}
		}
	}
	for id := first; int(id) <= n; id++ {
		e := m.entity[id]
		if e == 0 {
			m.numEnts++
			m.items[id-1] = item{kind: runNew}
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
	// New ones are numbered as a reader does it.
	next := parent.numEnts
	for id := first; int(id) <= n; id++ {
		if m.entity[id] == 0 {
			next++
			m.entity[id] = next
		}
	}
	return m
}
