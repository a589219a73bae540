// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
)

// known indexes a parent's state for an encoder.
type known struct {
	st    *state
	names nameTable
	back  []bool   // whether a name is at the back
	in    []uint32 // positions of entities in the parent's list of types, from 1
	types typeTable
}

// newKnown returns the index of a state.
func newKnown(st *state) *known {
	k := &known{st: st, names: newNameTable(st.names.count), back: make([]bool, st.names.count), in: make([]uint32, st.numEnts+1)}
	for _, s := range st.backNames {
		for i := s.first; i < s.end; i++ {
			k.back[i] = true
		}
	}
	for i := range uint32(st.names.count) {
		k.names.set(nameOf(st.names.at(i)), i, k.name)
	}
	contents := make([]uint32, st.numEnts+1) // content of each entity
	for i, c := range st.all.contents {
		e := st.all.entities[i]
		contents[e], k.in[e] = c, uint32(i)+1
	}
	h := newHasher(st.all.entities, st.numEnts, st.names.count, func(e uint32) []uint32 { return st.content(contents[e]) })
	k.types = newTypeTable(h, st.all.entities)
	return k
}

// nameOf cuts the NUL byte off.
func nameOf(text []byte) []byte { return text[:len(text)-1] }

func (k *known) name(i uint32) []byte { return nameOf(k.st.names.at(i)) }

// nameTable finds names by their text. Of equal names it has the last.
type nameTable struct {
	slots []nameSlot // a power of two, at least a third of them free
	count int
}

type nameSlot struct {
	hash   uint32 // some bits
	number uint32 // number of the name plus 1; 0 if the slot is free
}

var nameSeed = maphash.MakeSeed()

func newNameTable(n int) nameTable { return nameTable{slots: make([]nameSlot, roomFor(n))} }

// roomFor returns how many slots a table for n items has.
func roomFor(n int) int { return 1 << bits.Len(uint(n+n/2+1)) }

// find returns the slot of a name, or a free one. text returns the text of a name in the table.
func (t *nameTable) find(name []byte, text func(uint32) []byte) (s *nameSlot, hash uint32) {
	h := maphash.Bytes(nameSeed, name)
	hash = uint32(h >> 32)
	for i := int(h) & (len(t.slots) - 1); ; i = (i + 1) & (len(t.slots) - 1) {
		s = &t.slots[i]
		if s.number == 0 || s.hash == hash && bytes.Equal(text(s.number-1), name) {
			return s, hash
		}
	}
}

// set adds a name, or gives it another number. There must be room.
func (t *nameTable) set(name []byte, number uint32, text func(uint32) []byte) {
	s, hash := t.find(name, text)
	if s.number == 0 {
		t.count++
	}
	*s = nameSlot{hash, number + 1}
}

// grow makes room for one more name. The names have consecutive numbers from first, in the order in which they were added.
func (t *nameTable) grow(first uint32, text func(uint32) []byte) {
	if roomFor(t.count+1) <= len(t.slots) {
		return
	}
	n := t.count
	*t = newNameTable(2 * (n + 1))
	for i := range uint32(n) {
		t.set(text(first+i), first+i, text)
	}
}

// remove removes the name that was added last.
func (t *nameTable) remove(name []byte, text func(uint32) []byte) {
	if s, _ := t.find(name, text); s.number > 0 {
		*s = nameSlot{}
		t.count--
	}
}

// hashTable maps hashes to numbers.
type hashTable []hashSlot

type hashSlot struct {
	hash  uint32 // the upper half, the lower one leads to the slot; 0 if the slot is free
	value uint32
}

// upper returns the half of a hash that a slot has.
func upper(hash uint64) uint32 { return max(uint32(hash>>32), 1) }

func newHashTable(n int) hashTable { return make(hashTable, roomFor(n)) }

// at returns the value of a hash, which is 0 at first. There must be room.
func (t hashTable) at(hash uint64) *uint32 {
	h := upper(hash)
	for i := int(hash) & (len(t) - 1); ; i = (i + 1) & (len(t) - 1) {
		s := &t[i]
		if s.hash == 0 {
			s.hash = h
		}
		if s.hash == h {
			return &s.value
		}
	}
}

// typeTable finds entities by the hashes of types. Of types with the same hash, it has the ordinal as well.
type typeTable struct {
	unique []uint32  // entities by label, if one type alone has it
	others hashTable // entities of the other types, by hash and ordinal; 0 if there is none
}

// newTypeTable returns the table of types that are numbered by entity, in order.
func newTypeTable(h *hasher, order []uint32) typeTable {
	t := typeTable{unique: make([]uint32, len(h.labels)), others: newHashTable(len(order) - h.unique + 1)}
	h.each(order, func(label int, hash uint64, e uint32) {
		if label > 0 {
			t.unique[label] = e
		} else {
			*t.others.at(hash) = e
		}
	})
	return t
}

// find returns the entity of a type, or 0.
func (t *typeTable) find(label int, hash uint64) uint32 {
	switch {
	case label >= len(t.unique):
		return 0
	case label > 0:
		return t.unique[label]
	}
	h := upper(hash)
	for i := int(hash) & (len(t.others) - 1); ; i = (i + 1) & (len(t.others) - 1) {
		if s := &t.others[i]; s.hash == h || s.hash == 0 {
			return s.value
		}
	}
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
	labels  []uint8  // how many types have a label, at most 2
	unique  int      // labels that one type has
}

// hashDepth is how deep anonymous types in each other are hashed.
const hashDepth = 200

// labelOf combines kind and name. Few types of a kernel have the same label.
func labelOf(w []uint32) int { return int(uint32(kindOf(w)) ^ w[0]) }

// newHasher returns a hasher for the types in order, which are up to last and have this many names.
func newHasher(order []uint32, last uint32, names int, content func(uint32) []uint32) *hasher {
	h := &hasher{content: content, hash: make([]uint64, last+1), labels: make([]uint8, names+btf.NumKinds+32)}
	for _, t := range order {
		if w := content(t); w[0] != 0 {
			switch n := &h.labels[labelOf(w)]; *n {
			case 0:
				h.unique++
				*n = 1
			case 1:
				h.unique--
				*n = 2
			}
		}
	}
	return h
}

// each yields the types in order. A type whose label is unique has that; the others have the label 0 and a hash of their hash
// and of their ordinal among the types with the same hash.
func (h *hasher) each(order []uint32, yield func(label int, hash uint64, t uint32)) {
	count := newHashTable(len(order) - h.unique + 1)
	for _, t := range order {
		if w := h.content(t); w[0] != 0 {
			if label := labelOf(w); label > 0 && h.labels[label] == 1 {
				yield(label, 0, t)
				continue
			}
		}
		x := h.of(t, 0)
		n := count.at(x)
		yield(0, mix(x, uint64(*n)), t)
		*n++
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
	x := mix(uint64(kindOf(w)), uint64(w[0]))
	switch {
	case w[0] == 0:
		h.hash[t] = 1
		var room [8]uint32
		sum := append(room[:0], w...)
		eachRef(w, func(i int) { sum[i] = uint32(h.of(w[i], depth+1)) })
		for _, v := range sum {
			x = mix(x, uint64(v))
		}
	case h.labels[labelOf(w)] > 1: // several types of the name
		x = mix(x, uint64(w[1]))
		eachName(w, func(i int) { x = mix(x, uint64(w[i])) })
	}
	h.hash[t] = x
	return x
}

// matching says what of a chunk its parent has.
type matching struct {
	entity  []uint32 // entities by type ID
	front   []bool   // whether a type is at the front, by its ID; true for void
	items   []item   // items[i] is for the type with ID i+1
	numEnts uint32
}

// match finds the types of p that the parent has, and replaces the type IDs in p with entities. It says what is at the front, and puts
// the new names in order. If the parent is the kernel of these modules, its types come first.
func match(parent *state, p *parsed, kernel bool) *matching {
	n := p.numTypes() - 1
	m := &matching{entity: make([]uint32, n+1), front: make([]bool, n+1), items: make([]item, n)}
	if kernel && n >= parent.all.len() {
		copy(m.entity[1:], parent.all.entities)
	} else {
		order := make([]uint32, n)
		for i := range order {
			order[i] = uint32(i) + 1
		}
		h := newHasher(order, uint32(n), p.known.st.names.count+len(p.fresh), p.record)
		h.each(order, func(label int, hash uint64, id uint32) { m.entity[id] = p.known.types.find(label, hash) })
	}
	for i := range m.items {
		it := &m.items[i]
		if e := m.entity[i+1]; e != 0 {
			it.at = p.known.in[e] - 1
		} else {
			it.kind = runNext
		}
	}
	m.number(parent)
	m.choose(parent, p)
	m.number(parent)
	for id := 1; id <= n; id++ {
		t := p.record(uint32(id))
		eachRef(t, func(i int) { t[i] = m.entity[t[i]] })
	}
	p.place(m.front)
	for i := range m.items {
		if it := &m.items[i]; it.kind != runNext && !slices.Equal(m.old(parent, i), p.record(uint32(i)+1)) {
			it.kind = runChanged
		}
	}
	return m
}

// number numbers the new entities as a reader does, which has those at the front first.
func (m *matching) number(parent *state) {
	m.numEnts = parent.numEnts
	for _, front := range []bool{true, false} {
		for i := range m.items {
			if m.items[i].kind == runNext && m.front[i+1] == front {
				m.numEnts++
				m.entity[i+1] = m.numEnts
			}
		}
	}
}

// old returns the content that the parent has for the entity of an item.
func (m *matching) old(parent *state, item int) []uint32 {
	return parent.content(parent.all.contents[m.items[item].at])
}

// choose sets m.front. At the front are those that relocations can name, those that are at the front of the parent and have
// not changed, and what these refer to. A type that is not at the same place of the parent is a new entity.
func (m *matching) choose(parent *state, p *parsed) {
	m.front[0] = true
	var todo []uint32
	add := func(id uint32) {
		if !m.front[id] {
			m.front[id] = true
			todo = append(todo, id)
		}
	}
	var same []uint32
	for i, it := range m.items {
		w := p.record(uint32(i) + 1)
		if w[0] != 0 && kindOf(w).Shape().Named {
			add(uint32(i) + 1)
		} else if it.kind != runNext && parent.atFront[it.at] {
			same = append(same[:0], w...)
			eachRef(same, func(i int) { same[i] = m.entity[same[i]] })
			if slices.Equal(m.old(parent, i), same) {
				add(uint32(i) + 1)
			}
		}
	}
	for len(todo) > 0 {
		w := p.record(todo[len(todo)-1])
		todo = todo[:len(todo)-1]
		eachRef(w, func(i int) { add(w[i]) })
	}
	for i := range m.items {
		if it := &m.items[i]; it.kind != runNext && m.front[i+1] != parent.atFront[it.at] {
			*it = item{kind: runNext}
		}
	}
}

// orders returns the order of the types at the front, and that of all types.
func (m *matching) orders(parent *state) (front, all []item) {
	at := make([]uint32, len(parent.atFront)) // positions among those at the front
	n := uint32(0)
	for i, front := range parent.atFront {
		at[i] = n
		if front {
			n++
		}
	}
	front, all = make([]item, 0, len(m.items)), make([]item, len(m.items))
	next := uint32(0) // the position behind the last one in the parent's list
	for i, it := range m.items {
		if !m.front[i+1] {
			all[i] = it
		} else {
			// The run before goes on if the parent has a type at the front there, whichever it is.
			all[i] = item{kind: runFront}
			goesOn := int(next) < len(at) && parent.atFront[next]
			switch {
			case i > 0 && all[i-1].kind < runNext && goesOn:
				all[i] = item{all[i-1].kind, next}
			case it.kind < runNext:
				all[i] = item{runCopy, it.at}
			}
			if it.kind < runNext {
				it.at = at[it.at]
			}
			front = append(front, it)
		}
		next = 0
		if all[i].kind < runNext {
			next = all[i].at + 1
		}
	}
	return front, all
}

// isWhole reports whether an order is that of a parent's list of n items.
func isWhole(items []item, n int) bool {
	for i, it := range items {
		if it != (item{runCopy, uint32(i)}) {
			return false
		}
	}
	return len(items) == n
}

// place numbers the new names in the order in which a reader needs them: first those of types at the front and those without types, then
// those of types at the back. A type at the front does not use names that the parent has at the back.
func (p *parsed) place(front []bool) {
	first := uint32(p.known.st.names.count)
	to := make([]uint32, int(first)+len(p.fresh)) // new numbers, from 1, by number
	var names [][]byte
	use := func(n uint32) {
		if to[n] != 0 {
			return
		}
		if n < first {
			names = append(names, p.known.name(n))
		} else {
			names = append(names, p.name(n))
		}
		to[n] = first + uint32(len(names))
	}
	each := func(atFront bool, f func(n uint32)) {
		for id := 1; id < p.numTypes(); id++ {
			if front[id] == atFront {
				w := p.record(uint32(id))
				eachName(w, func(i int) { f(w[i]) })
			}
		}
	}
	each(true, func(n uint32) {
		if n >= first || p.known.back[n] {
			use(n)
		}
	})
	const later = ^uint32(0)
	var back []uint32
	each(false, func(n uint32) {
		if n >= first && to[n] == 0 {
			to[n] = later
			back = append(back, n)
		}
	})
	for _, n := range p.strings {
		if n >= first {
			use(n)
		}
	}
	p.atFront = len(names)
	for _, n := range back {
		to[n] = 0
		use(n)
	}
	number := func(n *uint32) {
		if to[*n] != 0 {
			*n = to[*n] - 1
		}
	}
	for id := 1; id < p.numTypes(); id++ {
		w := p.record(uint32(id))
		eachName(w, func(i int) { number(&w[i]) })
	}
	for i := range p.strings {
		number(&p.strings[i])
	}
	p.fresh = append(p.fresh[:0], names...)
}
