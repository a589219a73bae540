// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btfa"
)

// The streams of a payload. Each holds one sort of value, because similar values next to each other compress well.
const (
	streamUnits        = iota
	streamText         // new names, without the prefixes that they share with the name before
	streamShared       // lengths of these prefixes
	streamTypes        // order of types: runs
	streamTypeStarts   // their starts
	streamStrings      // order of strings: runs
	streamStringStarts // their starts
	streamKinds
	streamCounts       // of elements
	streamOffsets      // of members
	streamSizes        // of structs and unions
	streamValues       // of enumerators
	streamNumbers      // other numbers
	streamTypeNames    // names of types
	streamElemNames    // names of elements
	streamNameNumbers  // large numbers of names
	streamTypeRefs     // references of types
	streamElemRefs     // references of elements
	streamRefDistances // large distances of references
	streamRefRanks     // large ranks of references
	numStreams
)

var (
	errStreams = errors.New("streams do not add up")
	errWrong   = errors.New("numbers do not fit together")
)

// codec decodes a payload to a state, or encodes the new contents of a state.
type codec struct {
	parent, st *state
	in         [numStreams]btfa.Cursor // of a decoder
	out        *[numStreams][]byte     // of an encoder, else nil
	fresh      []fresh                 // the types with new contents
	err        error

	// guesses predict the names and references of contents: the one that came last in a context, by a hash of that.
	names, refs [guessSize]uint32
	learning    bool // content only notes what its words are, as guesses

	id       uint32   // of the type whose content is coded
	lastType uint32   // the last name of a type
	lastName uint32   // the last name, unless that was none
	nextNew  uint32   // the new name to be used next
	listed   []uint32 // entities that were coded by distance

	// Of an encoder:
	used  []bool   // by new name: coded
	ids   []uint32 // type IDs by entity
	ranks []uint32 // in listed, from 1, by entity
}

// fresh is a type with a new content.
type fresh struct {
	id  uint32
	old uint32 // the content of its entity in the parent, or noContent
}

const noContent = ^uint32(0)

const (
	guessBits = 16
	guessSize = 1 << guessBits
)

// slot returns the index of a context in a table of guesses.
func slot(a, b uint32) uint32 {
	return (a*0x9e3779b1 + b*0x85ebca77 + 0x27d4eb2f) * 0xc2b2ae3d >> (32 - guessBits)
}

// split sets the streams of a decoder.
func (c *codec) split(payload []byte) error {
	p := btfa.NewCursor(payload)
	var lens [numStreams]uint64
	for i := range lens {
		lens[i] = p.Uvarint()
	}
	for i, n := range lens {
		if n > uint64(p.Len()) {
			return cmp.Or(p.Err, errStreams)
		}
		c.in[i] = btfa.NewCursor(p.Bytes(int(n)))
	}
	if p.Len() > 0 {
		return errStreams
	}
	return p.Err
}

// join returns the parts of a payload: the lengths of streams, and the streams.
func join(streams *[numStreams][]byte) [][]byte {
	var lens []byte
	for _, s := range streams {
		lens = binary.AppendUvarint(lens, uint64(len(s)))
	}
	return append([][]byte{lens}, streams[:]...)
}

// end returns an error if one of the streams from first on has failed or has bytes left.
func end(s []btfa.Cursor, first int) error {
	for i := range s {
		if s[i].End(); s[i].Err != nil {
			return fmt.Errorf("stream %d: %w", first+i, s[i].Err)
		}
	}
	return nil
}

// fail notes the first error.
func (c *codec) fail() uint32 {
	c.err = errWrong
	return 0
}

// byte codes a byte: it writes v and returns it, or returns what it reads.
func (c *codec) byte(stream int, v byte) byte {
	if c.out == nil {
		return c.in[stream].Byte()
	}
	c.out[stream] = append(c.out[stream], v)
	return v
}

// number codes a number.
func (c *codec) number(stream int, v uint64) uint64 {
	if c.out == nil {
		return c.in[stream].Uvarint()
	}
	c.out[stream] = binary.AppendUvarint(c.out[stream], v)
	return v
}

func (c *codec) signed(stream int, v int64) int64 {
	return btfa.Unzigzag(c.number(stream, btfa.Zigzag(v)))
}

// word codes a word as a number.
func (c *codec) word(stream int, v *uint32) {
	if !c.learning {
		*v = uint32(c.number(stream, uint64(*v)))
	}
}

// contents codes the new contents. An encoder gets their records by type ID.
func (c *codec) contents(records [][]uint32) error {
	for _, f := range c.fresh {
		var head uint32
		if c.out != nil {
			head = records[f.id][1]
		}
		kind, count := c.byte(streamKinds, byte(head>>24)), uint64(0)
		if layouts[kind&0x7f].counted {
			count = c.number(streamCounts, uint64(head&0xffffff))
		}
		second := uint32(kind)<<24 | uint32(count)
		w := c.st.contents.push(int(recordLen(second)))
		if c.out != nil {
			copy(w, records[f.id])
		}
		w[1] = second
		c.id = f.id
		if f.old != noContent {
			c.learn(c.parent.content(f.old))
		}
		c.content(w, &c.lastType)
		if c.err != nil {
			return c.err
		}
	}
	return nil
}

// words returns how many words the new contents have. A word takes half a byte or more.
func (c *codec) words(payload int) (n int, err error) {
	kinds, counts := c.in[streamKinds], c.in[streamCounts]
	for _, kind := range kinds.Rest() {
		count := uint64(0)
		if k := kind & 0x7f; int(k) < btf.NumKinds && layouts[k].counted {
			count = counts.Uvarint()
		}
		size := recordLen(uint32(kind)<<24 | uint32(count))
		if n += int(size); size == 0 || count > 1<<24-1 || n > 2*payload {
			return 0, cmp.Or(counts.Err, errWrong)
		}
	}
	return n, nil
}

// learn makes guesses from the content that an entity has in the parent, for the new one that comes next. It ignores elements without
// names.
func (c *codec) learn(w []uint32) {
	if layouts[kindOf(w)].names == 0 {
		w = w[:3]
	}
	last := c.lastType
	c.learning = true
	c.content(w, &last)
	c.learning = false
}

// content codes the words of a content, except for its kind and number of elements. last is the last name of a type.
func (c *codec) content(w []uint32, last *uint32) {
	k := kindOf(w)
	l := &layouts[k]
	if l.named {
		c.name(streamTypeNames, uint32(k), *last, &w[0])
	}
	if w[0] != 0 {
		*last = w[0]
	}
	ref := uint32(0) // the last reference
	switch {
	case l.third == btf.Ref:
		c.ref(streamTypeRefs, uint32(k), *last, &w[2])
		ref = w[2]
	case l.third == btf.Size && k.IsComposite():
		c.word(streamSizes, &w[2])
	case l.third == btf.Size:
		c.word(streamNumbers, &w[2])
	}
	if len(w) == 3 {
		return
	}
	for i, word := range k.Shape().Extra {
		if word == btf.Ref {
			c.ref(streamElemRefs, uint32(k), uint32(i), &w[3+i])
		} else {
			c.word(streamNumbers, &w[3+i])
		}
	}
	prev, before, number := w[0], uint32(k), uint32(0)
	for x, n := w[l.first:], int(l.words); len(x) > 0; x = x[n:] {
		if k == btf.KindDatasec {
			c.ref(streamElemRefs, uint32(k), 0, &x[0])
			c.value(number, &x[1])
			c.word(streamNumbers, &x[2])
			number = x[1] + x[2]
			continue
		}
		c.name(streamElemNames, prev, before, &x[0])
		switch {
		case l.ref:
			c.ref(streamElemRefs, cmp.Or(x[0], ref), prev, &x[1])
			ref = x[1]
			if k.IsComposite() {
				c.offset(number, &x[2])
				number = x[2]
			}
		default: // an enum
			c.value(number, &x[1])
			number = x[1]
			if n == 3 {
				c.word(streamNumbers, &x[2])
			}
		}
		prev, before = x[0], prev
	}
}

// value codes an enumerator's value or the offset of a variable, as the difference from another one.
func (c *codec) value(before uint32, v *uint32) {
	if !c.learning {
		*v = before + uint32(c.signed(streamValues, int64(int32(*v-before))))
	}
}

// offset codes a member's offset, as the difference from the one before.
func (c *codec) offset(before uint32, v *uint32) {
	if !c.learning {
		*v = before + uint32(btfa.UnpackOffset(c.number(streamOffsets, btfa.PackOffset(int64(int32(*v-before))))))
	}
}

// Codes of names.
const (
	nameNext   = 0   // the new name behind the last one
	nameGuess  = 1   // the one that came last after these two
	nameEmpty  = 2   // none
	nameJump   = 3   // a new name, at a distance from the one behind the last one
	nameNumber = 4   // by number
	nameNear   = 130 // and all others: at a distance from the last name
)

// name codes a name that comes after two others.
func (c *codec) name(stream int, prev, before uint32, v *uint32) {
	guess := &c.names[slot(prev, before)]
	if !c.learning {
		code := byte(0)
		if c.out != nil {
			code = c.nameCode(*v, *guess)
		}
		switch code = c.byte(stream, code); code {
		case nameNext:
			*v = c.newName(0)
		case nameGuess:
			*v = *guess
		case nameEmpty:
			*v = 0
		case nameJump:
			*v = c.newName(c.signed(streamNameNumbers, int64(*v)-int64(c.nextNew)))
		case nameNumber:
			*v = c.known(int64(c.number(streamNameNumbers, uint64(*v))))
		default:
			*v = c.known(int64(c.lastName) + int64(code) - nameNear)
		}
		if *v != 0 {
			c.lastName = *v
		}
	}
	*guess = *v
}

// nameCode chooses the code of a name.
func (c *codec) nameCode(name, guess uint32) byte {
	fresh := false
	if i := int(name) - c.parent.names.n; i >= 0 {
		fresh = !c.used[i]
		c.used[i] = true
	}
	near := int64(name) - int64(c.lastName) + nameNear
	switch {
	case fresh && name == c.nextNew:
		return nameNext
	case name == 0:
		return nameEmpty
	case name == guess:
		return nameGuess
	case fresh:
		return nameJump
	case near > nameNumber && near <= 255:
		return byte(near)
	}
	return nameNumber
}

// newName returns a new name and moves on to the next one.
func (c *codec) newName(jump int64) uint32 {
	v := c.known(int64(c.nextNew) + jump)
	c.nextNew = v + 1
	return v
}

// known returns the number of a name.
func (c *codec) known(v int64) uint32 {
	if uint64(v) >= uint64(c.st.names.n) {
		return c.fail()
	}
	return uint32(v)
}

// Codes of references.
const (
	refDistance = 0   // by distance; listed
	refGuess    = 1   // the one that came last with these two names
	refHere     = 25  // by distance: refHere-refReach to refHere+refReach
	refReach    = 23  //
	refRank     = 49  // and more: by rank among those that were listed
	refFarRank  = 255 // by a large rank
)

// ref codes a reference after two names.
func (c *codec) ref(stream int, name, before uint32, v *uint32) {
	guess := &c.refs[slot(name, before)]
	if !c.learning {
		code, distance, rank := byte(0), int64(0), uint32(0)
		if c.out != nil {
			code, distance, rank = c.refCode(*v, *guess)
		}
		switch code = c.byte(stream, code); {
		case code == refGuess:
			*v = *guess
		case code == refDistance:
			*v = c.at(int64(c.id) + c.signed(streamRefDistances, distance))
			c.listed = append(c.listed, *v)
		case code < refRank:
			*v = c.at(int64(c.id) + int64(code) - refHere)
		case code < refFarRank:
			*v = c.ranked(uint64(code - refRank))
		default:
			*v = c.ranked(c.number(streamRefRanks, uint64(rank)))
		}
	}
	*guess = *v
}

// refCode chooses the code of a reference, and returns its distance and its rank.
func (c *codec) refCode(entity, guess uint32) (code byte, distance int64, rank uint32) {
	distance, rank = int64(c.ids[entity])-int64(c.id), c.ranks[entity]
	switch {
	case entity == guess:
		return refGuess, 0, 0
	case -refReach <= distance && distance <= refReach:
		return byte(refHere + distance), 0, 0
	case rank == 0:
		c.ranks[entity] = uint32(len(c.listed)) + 1
		return refDistance, distance, 0
	case rank <= refFarRank-refRank:
		return byte(refRank + rank - 1), 0, 0
	}
	return refFarRank, 0, rank - 1
}

// at returns the entity of the type with an ID.
func (c *codec) at(id int64) uint32 {
	switch {
	case id == 0:
		return 0
	case id < 0 || id > int64(len(c.st.types)):
		return c.fail()
	}
	return c.st.entity(c.st.types[id-1])
}

func (c *codec) ranked(rank uint64) uint32 {
	if rank >= uint64(len(c.listed)) {
		return c.fail()
	}
	return c.listed[rank]
}
