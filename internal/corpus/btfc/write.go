// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"encoding/binary"
	"slices"

	"github.com/btfgen/btfgen/internal/btfa"
)

// writer encodes a kernel, or the modules of one, for reader.
type writer struct {
	s        streams
	parent   *state
	parsed   *parsed
	guess    guesses
	id       uint32 // of the type that is written
	used     []bool // of the new names: written
	nextNew  uint32
	lastName uint32
	entity   []uint32          // by type ID
	ranks    map[uint32]uint32 // from 1, of the entities that were listed
}

// write returns the streams of BTF. m is what its parent has.
func write(parent *state, p *parsed, m *matching) (*streams, error) {
	w := &writer{
		parent: parent, parsed: p, used: make([]bool, len(p.fresh)), nextNew: uint32(parent.numNames), entity: m.entity,
		ranks: make(map[uint32]uint32),
	}
	copy(w.s[streamTypes:], encodeOrder(m.items, len(parent.types), false))
	words, contents := 0, 0
	for id, fresh := range m.fresh {
		if fresh {
			words += len(p.types[id])
			contents++
			if it := m.items[id-1]; it.kind == runChanged {
				w.guess.learn(parent.content(parent.types[it.at]))
			}
			w.id = uint32(id)
			w.content(p.types[id])
		}
	}
	if err := w.strings(); err != nil {
		return nil, err
	}
	w.s[streamRest] = p.rest
	text := w.names()
	for _, n := range []int{len(p.fresh), text, contents, words, len(w.ranks), len(p.types) - 1, len(p.strings)} {
		w.uvarint(streamHead, uint64(n))
	}
	return &w.s, nil
}

// names writes the new names. It returns how many bytes they have.
func (w *writer) names() (size int) {
	var last []byte
	for _, t := range w.parsed.fresh {
		n := 0
		for n < min(len(t), len(last), 255) && t[n] == last[n] {
			n++
		}
		w.byte(streamShared, byte(n))
		w.s[streamText] = append(append(w.s[streamText], t[n:]...), 0)
		last = t
		size += len(t) + 1
	}
	return size
}

func (w *writer) byte(stream int, v byte) { w.s[stream] = append(w.s[stream], v) }

func (w *writer) uvarint(stream int, v uint64) { w.s[stream] = binary.AppendUvarint(w.s[stream], v) }

// strings writes the order of strings: against that of the parent, or as the types use them.
func (w *writer) strings() error {
	p := w.parsed
	parents, err := w.parent.list()
	if err != nil {
		return err
	}
	// The next position of each name in the parent's list, from 1: lines may occur more than once.
	at, next := make([]uint32, w.parent.numNames), make([]uint32, len(parents))
	for i, n := range slices.Backward(parents) {
		at[n], next[i] = uint32(i)+1, at[n]
	}
	items := make([]item, len(p.strings))
	fresh := uint32(len(at))
	for i, n := range p.strings {
		switch {
		case n == fresh:
			items[i] = item{kind: runNew}
			fresh++
		case n < uint32(len(at)) && at[n] > 0:
			items[i] = item{runCopy, at[n] - 1}
			at[n] = next[at[n]-1]
		default:
			items[i] = item{runOld, n}
		}
	}
	best, derived := encodeOrder(items, len(parents), true), encodeOrder(w.derived(items), len(parents), true)
	if size := orderSize(best); orderSize(derived) < size-size/8 {
		best = derived
	}
	copy(w.s[streamStrings:], best)
	return nil
}

func orderSize(order [][]byte) (n int) {
	for _, s := range order {
		n += len(s)
	}
	return n
}

// derived replaces items of strings that come in the order in which the types use them.
func (w *writer) derived(items []item) []item {
	p := w.parsed
	uses := p.uses(p.types[1:])
	seen := make([]bool, w.parent.numNames+len(p.fresh))
	out := slices.Clone(items)
	fresh := uint32(w.parent.numNames)
	for i, n := range p.strings {
		for len(uses) > 0 && seen[uses[0]] {
			uses = uses[1:]
		}
		switch {
		case len(uses) > 0 && uses[0] == n:
			out[i] = item{kind: runDerived}
		case items[i].kind == runNew && n != fresh:
			out[i] = item{runOld, n}
		case items[i].kind == runNew:
			fresh = n + 1
		}
		seen[n] = true
	}
	return out
}

// content writes a content, whose names are numbers and whose references are IDs.
func (w *writer) content(t []uint32) {
	w.byte(streamKinds, byte(t[1]>>24))
	if layouts[kindOf(t)].counted {
		w.uvarint(streamCounts, uint64(t[1]&0xffffff))
	}
	codeContent(w, t, &w.guess.last)
}

func (w *writer) name(stream int, prev, before uint32, v *uint32) {
	name := *v
	guess := &w.guess.names[slot(prev, before)]
	known := uint32(w.parent.numNames)
	fresh := name >= known && name < inBase && !w.used[name-known]
	near := int64(name) - int64(w.lastName) + nameNear
	switch {
	case name == w.nextNew && fresh:
		w.byte(stream, nameNext)
		w.nextNew++
	case name == 0:
		w.byte(stream, nameEmpty)
	case *guess == name:
		w.byte(stream, nameGuess)
	case fresh:
		w.byte(stream, nameJump)
		w.uvarint(streamNameNumbers, btfa.Zigzag(int64(name)-int64(w.nextNew)))
		w.nextNew = name + 1
	case near > nameNumber && near <= 255:
		w.byte(stream, byte(near))
	default:
		w.byte(stream, nameNumber)
		number := uint64(name)
		if name >= inBase {
			number += uint64(known) + uint64(len(w.used)) - inBase
		}
		w.uvarint(streamNameNumbers, number)
	}
	if fresh {
		w.used[name-known] = true
	}
	if name != 0 {
		w.lastName = name
	}
	*guess = name
}

// resolve returns the entity of a reference.
func (w *writer) resolve(x uint32) uint32 {
	if x < inBase {
		x = w.entity[x]
	}
	return x
}

func (w *writer) ref(stream int, name, before uint32, v *uint32) uint32 {
	to := *v
	guess := &w.guess.refs[slot(name, before)]
	e := w.resolve(to)
	d := int64(to) - int64(w.id)
	if p := w.parsed; to >= inBase {
		d = int64(p.baseIDs[to-inBase]) - int64(len(p.base.types)) - int64(w.id)
	} else if to == 0 && p.base != nil {
		d -= int64(len(p.base.types))
	}
	rank := w.ranks[e]
	switch {
	case *guess == e:
		w.byte(stream, refGuess)
	case -refReach <= d && d <= refReach:
		w.byte(stream, byte(refHere+d))
	case rank == 0:
		w.byte(stream, refDistance)
		w.uvarint(streamRefDistances, btfa.Zigzag(d))
		w.ranks[e] = uint32(len(w.ranks)) + 1
	case rank <= refFarRank-refRank:
		w.byte(stream, byte(refRank+rank-1))
	default:
		w.byte(stream, refFarRank)
		w.uvarint(streamRefRanks, uint64(rank-1))
	}
	*guess = e
	return e
}

func (w *writer) number(stream int, before uint32, v *uint32) {
	x, d := uint64(*v), int64(int32(*v-before))
	switch stream {
	case streamOffsets:
		x = btfa.PackOffset(d)
	case streamValues:
		x = btfa.Zigzag(d)
	}
	w.uvarint(stream, x)
}
