// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btfa"
)

// A decoder reads new contents from the streams, and an encoder writes the same streams. Both follow the same steps, with one
// method of each for a step.

// decoder makes a state of its parent and a payload.
type decoder struct {
	model
	in    [numStreams]btfa.Cursor // streams of the front, and then of the back
	back  [numStreams]btfa.Cursor
	fresh []fresh // the types with new contents at the front
	late  []fresh // those with new contents at the back
	query *Query  // nil if all is decoded
	err   error

	seconds [2][]uint32 // words of the contents at the front and at the back

	touched uint32 // kinds that ahead has read; the value has no meaning
}

// encoder writes the streams of a state. It has a decoder for the streams that make all of the state but the new contents.
type encoder struct {
	*decoder
	front, back [numStreams][]byte
	out         *[numStreams][]byte // one of these
	places      []uint32            // positions in model.list, from 1, by entity
	ranks       []uint32            // positions in listed, from 1, by entity
}

// contents decodes the new contents: first those at the front, then those at the back.
func (d *decoder) contents() error {
	for _, some := range d.seconds {
		for _, second := range some {
			d.st.contents.push(int(recordLen(second)))[1] = second
		}
	}
	first := uint32(d.parent.contents.count)
	if err := d.each(d.fresh, first); err != nil || len(d.late) == 0 {
		return err
	}
	err := end(d.in[:], 0)
	d.in, d.back = d.back, [numStreams]btfa.Cursor{}
	d.turn()
	return cmp.Or(err, d.each(d.late, first+uint32(len(d.fresh))))
}

// turn moves on from the front to the back.
func (m *model) turn() {
	m.list = m.st.all.entities
	if n := len(m.st.backNames); n > len(m.parent.backNames) {
		m.nextNew = m.st.backNames[n-1].first
	}
}

// each decodes the contents of types, which are numbered from next.
func (d *decoder) each(types []fresh, next uint32) error {
	var olds [aheadTypes][]uint32
	for some := range slices.Chunk(types, aheadTypes) {
		d.ahead(some, &olds)
		for i, f := range some {
			w := d.st.content(next)
			d.at = f.at
			if olds[i] != nil {
				d.learn(olds[i])
			}
			if d.content(w); d.err != nil {
				return d.err
			}
			if d.query != nil && w[0] != 0 && d.st.asked(w[0]) > 0 && kindOf(w).Shape().Named {
				d.st.found = append(d.st.found, next)
			}
			next++
		}
	}
	return nil
}

// aheadTypes is the number of types whose contents in the parent are looked up at once. They are scattered in memory, and a processor
// fetches them side by side if it has nothing else to do.
const aheadTypes = 64

// ahead sets olds to what types with new contents have in the parent, or to nil.
func (d *decoder) ahead(some []fresh, olds *[aheadTypes][]uint32) {
	for i, f := range some {
		olds[i] = nil
		if f.old != noContent {
			olds[i] = d.parent.content(f.old)
		}
	}
	kinds := uint32(0)
	for _, w := range olds[:len(some)] {
		if w != nil {
			kinds |= w[1]
		}
	}
	d.touched = kinds
}

// contents encodes the new contents, which are the records of p that m does not copy.
func (e *encoder) contents(p *parsed, m *matching) {
	front, back := make([][]uint32, 0, len(e.fresh)), make([][]uint32, 0, len(e.late))
	for i, it := range m.items {
		switch w := p.record(uint32(i) + 1); {
		case it.kind == runCopy:
		case m.front[i+1]:
			front = append(front, w)
		default:
			back = append(back, w)
		}
	}
	e.places = make([]uint32, m.numEnts+1)
	e.out = &e.front
	e.each(e.fresh, front)
	e.turn()
	e.out = &e.back
	e.each(e.late, back)
}

// each encodes the contents of types.
func (e *encoder) each(types []fresh, records [][]uint32) {
	for i, entity := range e.list {
		e.places[entity] = uint32(i) + 1
	}
	for i, f := range types {
		w := records[i]
		copy(e.st.contents.push(len(w)), w)
		if layouts[kindOf(w)].counted {
			e.number(streamCounts, uint64(w[1]&0xffffff))
		}
		e.decoder.at = f.at
		if f.old != noContent {
			e.learn(e.parent.content(f.old))
		}
		e.content(w)
	}
}

func (e *encoder) number(stream int, v uint64) {
	e.out[stream] = binary.AppendUvarint(e.out[stream], v)
}

func (e *encoder) signed(stream int, v int64) { e.number(stream, btfa.Zigzag(v)) }

// content decodes the words of a content, except for its kind and number of elements.
func (d *decoder) content(w []uint32) {
	k := kindOf(w)
	l := &layouts[k]
	if l.named {
		w[0] = d.name(d.in[streamTypeNames].Byte(), &d.names[slot(uint32(k), d.lastType)])
	}
	if w[0] != 0 {
		d.lastType = w[0]
	}
	switch {
	case l.third == btf.Ref:
		w[2] = d.ref(d.in[streamTypeRefs].Byte(), &d.refs[slot(uint32(k), d.lastType)])
	case l.third == btf.Size && k.IsComposite():
		w[2] = uint32(d.in[streamSizes].Uvarint())
	case l.third == btf.Size:
		w[2] = uint32(d.in[streamNumbers].Uvarint())
	}
	if len(w) == 3 {
		return
	}
	for i, word := range k.Shape().Extra {
		if word == btf.Ref {
			w[3+i] = d.ref(d.in[streamElemRefs].Byte(), &d.refs[slot(uint32(k), uint32(i))])
		} else {
			w[3+i] = uint32(d.in[streamNumbers].Uvarint())
		}
	}
	switch {
	case l.ref:
		d.members(w, k)
	case l.names > 0:
		d.enumerators(w, k)
	case l.words > 0:
		d.variables(w, k)
	}
}

// content encodes what a decoder's content decodes.
func (e *encoder) content(w []uint32) {
	k := kindOf(w)
	l := &layouts[k]
	if l.named {
		e.name(streamTypeNames, &e.names[slot(uint32(k), e.lastType)], w[0])
	}
	if w[0] != 0 {
		e.lastType = w[0]
	}
	switch {
	case l.third == btf.Ref:
		e.ref(streamTypeRefs, &e.refs[slot(uint32(k), e.lastType)], w[2])
	case l.third == btf.Size && k.IsComposite():
		e.number(streamSizes, uint64(w[2]))
	case l.third == btf.Size:
		e.number(streamNumbers, uint64(w[2]))
	}
	for i, word := range k.Shape().Extra {
		if word == btf.Ref {
			e.ref(streamElemRefs, &e.refs[slot(uint32(k), uint32(i))], w[3+i])
		} else {
			e.number(streamNumbers, uint64(w[3+i]))
		}
	}
	switch {
	case l.ref:
		e.members(w, k)
	case l.names > 0:
		e.enumerators(w, k)
	case l.words > 0:
		e.variables(w, k)
	}
}

// members decodes the members of a struct or union, or the parameters of a function.
func (d *decoder) members(w []uint32, k btf.Kind) {
	prev, before, ref, offset := w[0], uint32(k), uint32(0), uint32(0)
	if l := &layouts[k]; l.third == btf.Ref {
		ref = w[2]
	}
	n := int(layouts[k].names)
	x := w[3:]
	names, refs := d.in[streamElemNames].Bytes(len(x)/n), d.in[streamElemRefs].Bytes(len(x)/n)
	if len(names) != len(refs) {
		return // one of the streams has failed
	}
	for i, code := range names {
		name := d.name(code, &d.names[slot(prev, before)])
		ref = d.ref(refs[i], &d.refs[slot(cmp.Or(name, ref), prev)])
		x[0], x[1] = name, ref
		if n == 3 {
			offset += uint32(btfa.UnpackOffset(d.in[streamOffsets].Uvarint()))
			x[2] = offset
		}
		x = x[n:]
		prev, before = name, prev
	}
}

// members encodes members or parameters.
func (e *encoder) members(w []uint32, k btf.Kind) {
	prev, before, ref, offset := w[0], uint32(k), uint32(0), uint32(0)
	if l := &layouts[k]; l.third == btf.Ref {
		ref = w[2]
	}
	n := int(layouts[k].names)
	for x := w[3:]; len(x) > 0; x = x[n:] {
		e.name(streamElemNames, &e.names[slot(prev, before)], x[0])
		e.ref(streamElemRefs, &e.refs[slot(cmp.Or(x[0], ref), prev)], x[1])
		ref = x[1]
		if n == 3 {
			e.number(streamOffsets, btfa.PackOffset(int64(int32(x[2]-offset))))
			offset = x[2]
		}
		prev, before = x[0], prev
	}
}

// enumerators decodes the enumerators of an enum.
func (d *decoder) enumerators(w []uint32, k btf.Kind) {
	prev, before, value := w[0], uint32(k), uint32(0)
	n := int(layouts[k].names)
	x := w[3:]
	for _, code := range d.in[streamElemNames].Bytes(len(x) / n) {
		x[0] = d.name(code, &d.names[slot(prev, before)])
		value += uint32(btfa.Unzigzag(d.in[streamValues].Uvarint()))
		x[1] = value
		if n == 3 {
			x[2] = uint32(d.in[streamNumbers].Uvarint())
		}
		prev, before = x[0], prev
		x = x[n:]
	}
}

// enumerators encodes enumerators.
func (e *encoder) enumerators(w []uint32, k btf.Kind) {
	prev, before, value := w[0], uint32(k), uint32(0)
	n := int(layouts[k].names)
	for x := w[3:]; len(x) > 0; x = x[n:] {
		e.name(streamElemNames, &e.names[slot(prev, before)], x[0])
		e.signed(streamValues, int64(int32(x[1]-value)))
		value = x[1]
		if n == 3 {
			e.number(streamNumbers, uint64(x[2]))
		}
		prev, before = x[0], prev
	}
}

// variables decodes the variables of a section.
func (d *decoder) variables(w []uint32, k btf.Kind) {
	end := uint32(0) // end of the variable before
	for x := w[3:]; len(x) >= 3; x = x[3:] {
		x[0] = d.ref(d.in[streamElemRefs].Byte(), &d.refs[slot(uint32(k), 0)])
		x[1] = end + uint32(btfa.Unzigzag(d.in[streamValues].Uvarint()))
		x[2] = uint32(d.in[streamNumbers].Uvarint())
		end = x[1] + x[2]
	}
}

// variables encodes variables.
func (e *encoder) variables(w []uint32, k btf.Kind) {
	end := uint32(0)
	for x := w[3:]; len(x) >= 3; x = x[3:] {
		e.ref(streamElemRefs, &e.refs[slot(uint32(k), 0)], x[0])
		e.signed(streamValues, int64(int32(x[1]-end)))
		e.number(streamNumbers, uint64(x[2]))
		end = x[1] + x[2]
	}
}

// name decodes a name, and makes it the guess for its context.
func (d *decoder) name(code byte, guess *uint32) uint32 {
	v := *guess
	if code != nameGuess {
		v = d.otherName(code)
		*guess = v
	}
	if v != 0 {
		d.lastName = v
	}
	return v
}

// otherName decodes a name that is not the guess.
func (d *decoder) otherName(code byte) uint32 {
	switch code {
	case nameNext:
		d.nextNew++
		return d.known(int64(d.nextNew) - 1)
	case nameEmpty:
		return 0
	case nameNumber:
		return d.known(int64(d.in[streamNameNumbers].Uvarint()))
	}
	return d.known(int64(d.lastName) + int64(code) - nameNear)
}

// known returns the number of a name.
func (d *decoder) known(v int64) uint32 {
	if uint64(v) >= uint64(d.st.names.count) {
		return d.fail()
	}
	return uint32(v)
}

// fail notes an error.
func (d *decoder) fail() uint32 {
	d.err = errWrong
	return 0
}

// name encodes a name.
func (e *encoder) name(stream int, guess *uint32, v uint32) {
	code := e.nameCode(v, *guess)
	e.out[stream] = append(e.out[stream], code)
	switch code {
	case nameNext:
		e.nextNew = v + 1
	case nameNumber:
		e.number(streamNameNumbers, uint64(v))
	}
	if v != 0 {
		e.lastName = v
	}
	*guess = v
}

// nameCode chooses the code of a name.
func (e *encoder) nameCode(name, guess uint32) byte {
	near := int64(name) - int64(e.lastName) + nameNear
	switch {
	case name == e.nextNew: // new names are used in order
		return nameNext
	case name == 0:
		return nameEmpty
	case name == guess:
		return nameGuess
	case near > nameNumber && near <= 255:
		return byte(near)
	}
	return nameNumber
}

// ref decodes a reference, and makes it the guess for its context.
func (d *decoder) ref(code byte, guess *uint32) uint32 {
	if code == refGuess {
		return *guess
	}
	v := d.otherRef(code)
	*guess = v
	return v
}

// otherRef decodes a reference that is not the guess.
func (d *decoder) otherRef(code byte) uint32 {
	switch {
	case code == refDistance:
		v := d.typeAt(int64(d.at) + btfa.Unzigzag(d.in[streamRefDistances].Uvarint()))
		d.listed = append(d.listed, v)
		return v
	case code < refRank:
		return d.typeAt(int64(d.at) + int64(code) - refHere)
	case code < refFarRank:
		return d.ranked(uint64(code - refRank))
	}
	return d.ranked(d.in[streamRefRanks].Uvarint())
}

// typeAt returns the entity of the type at a position of the list, from 1. Position 0 is void.
func (d *decoder) typeAt(at int64) uint32 {
	switch {
	case at == 0:
		return 0
	case at < 0 || at > int64(len(d.list)):
		return d.fail()
	}
	return d.list[at-1]
}

func (d *decoder) ranked(rank uint64) uint32 {
	if rank >= uint64(len(d.listed)) {
		return d.fail()
	}
	return d.listed[rank]
}

// ref encodes a reference.
func (e *encoder) ref(stream int, guess *uint32, v uint32) {
	code, distance, rank := e.refCode(v, *guess)
	e.out[stream] = append(e.out[stream], code)
	switch code {
	case refDistance:
		e.signed(streamRefDistances, distance)
		e.listed = append(e.listed, v)
	case refFarRank:
		e.number(streamRefRanks, uint64(rank))
	}
	*guess = v
}

// refCode chooses the code of a reference, and returns its distance and its rank.
func (e *encoder) refCode(entity, guess uint32) (code byte, distance int64, rank uint32) {
	distance, rank = int64(e.places[entity])-int64(e.decoder.at), e.ranks[entity]
	switch {
	case entity == guess:
		return refGuess, 0, 0
	case -refReach <= distance && distance <= refReach:
		return byte(refHere + distance), 0, 0
	case rank == 0:
		e.ranks[entity] = uint32(len(e.listed)) + 1
		return refDistance, distance, 0
	case rank <= refFarRank-refRank:
		return byte(refRank + rank - 1), 0, 0
	}
	return refFarRank, 0, rank - 1
}
