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

// A chunk has a payload at the front, and one at the back, which may be missing. At the back are the contents that no relocation leads to,
// such as functions, and names that only these have. So a reader that wants types does without two thirds of the contents.

// The streams of a payload. Each holds one sort of value, because similar values next to each other compress well. The front has no order of
// strings, and the back no units.
const (
	streamUnits        = iota
	streamText         // new names, without the prefixes that they share with the name before
	streamShared       // lengths of these prefixes
	streamTypes        // order of the types at the front, or of all types: runs
	streamTypeStarts   // their starts
	streamStrings      // order of strings: runs
	streamStringStarts // their starts
	streamKinds        // kinds of new contents
	streamCounts       // numbers of elements
	streamOffsets      // offsets of members
	streamSizes        // sizes of structs and unions
	streamValues       // values of enumerators, and distances between variables
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

// model is what an encoder and a decoder know alike: what was coded last, and the guesses that follow from it.
type model struct {
	parent, st *state

	// Guesses predict the names and references of contents: the one that came last in a context, by a hash of that.
	names, refs [guessSize]uint32

	list     []uint32 // entities: at first those of the types at the front, then of all
	at       uint32   // position in list, from 1, of the type whose content is coded
	lastType uint32   // the last name of a type
	lastName uint32   // the last name, unless that was none
	nextNew  uint32   // the new name to be used next
	listed   []uint32 // entities that were coded by distance
}

// fresh is a type with a new content.
type fresh struct {
	at  uint32 // its position in model.list, from 1
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

// payloads are those of a chunk, each in parts.
type payloads struct {
	front, back [][]byte // the back is nil if there is none
}

// join returns the parts of a payload, one behind the other in memory: some numbers and the lengths of streams, and the streams.
func join(streams *[numStreams][]byte, numbers ...int) [][]byte {
	var lens []byte
	for _, n := range numbers {
		lens = binary.AppendUvarint(lens, uint64(n))
	}
	for _, s := range streams {
		lens = binary.AppendUvarint(lens, uint64(len(s)))
	}
	all := append(make([]byte, 0, int64(len(lens))+sizeOf(streams[:])), lens...)
	parts := [][]byte{all}
	for _, s := range streams {
		first := len(all)
		all = append(all, s...)
		parts = append(parts, all[first:])
	}
	return parts
}

// whole returns the payload whose parts join returned.
func whole(parts [][]byte) []byte {
	if parts == nil {
		return nil
	}
	return parts[0][:sizeOf(parts)]
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

// learn makes guesses from the content that an entity has in the parent, for the new one that comes next. It ignores elements without
// names.
func (m *model) learn(w []uint32) {
	k, last := uint32(kindOf(w)), m.lastType
	l := &layouts[k]
	if l.named {
		m.names[slot(k, last)] = w[0]
	}
	if w[0] != 0 {
		last = w[0]
	}
	ref := uint32(0) // the last reference
	if l.third == btf.Ref {
		ref = w[2]
		m.refs[slot(k, last)] = ref
	}
	n := int(l.names)
	if n == 0 {
		return
	}
	prev, before := w[0], k
	for x := w[l.first:]; len(x) >= n; x = x[n:] {
		m.names[slot(prev, before)] = x[0]
		if l.ref {
			m.refs[slot(cmp.Or(x[0], ref), prev)] = x[1]
			ref = x[1]
		}
		prev, before = x[0], prev
	}
}

// Codes of names.
const (
	nameNext   = 0   // the new name behind the last one
	nameGuess  = 1   // the one that came last after these two
	nameEmpty  = 2   // none
	nameNumber = 3   // the name whose number is in streamNameNumbers
	nameNear   = 130 // codes above nameNumber: the name at a distance of code-nameNear from the last one
)

// Codes of references.
const (
	refDistance = 0   // the type whose distance in the list is in streamRefDistances; it is added to listed
	refGuess    = 1   // the one that came last with these two names
	refHere     = 25  // codes from refHere-refReach to refHere+refReach: the type at a distance of code-refHere in the list
	refReach    = 23  //
	refRank     = 49  // codes from refRank to below refFarRank: the listed type with the rank code-refRank
	refFarRank  = 255 // the listed type whose rank is in streamRefRanks
)
