// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"github.com/btfgen/btfgen/internal/btf"
)

// state is what is known when a kernel has been read: its types and strings, and those of its ancestors, which it
// shares with them. It is immutable once it is made, and safe for concurrent use.
type state struct {
	// Names are numbered from 0, which is the empty one.
	names     []*namePage
	numNames  int
	textBytes int // of all names

	// Contents are numbered from 0. They have the words of the type's record, with the numbers of names for offsets, and of
	// entities, from 1, for type IDs.
	contents    []*contentPage
	numContents int
	numWords    int // of all contents
	numEnts     uint32

	types []uint32         // contents, in the order of type IDs, from ID 1
	list  *later[[]uint32] // names, in the order of the string section; nil for none
	rest  []byte           // what is neither of these sections, from the header on

	// found is, of a state for a query, the contents that may be looked for, ascending.
	found []uint32
}

// A page has so many names or contents, the last one fewer. Full pages are shared with the states that go on from one.
const (
	pageBits = 10
	pageLen  = 1 << pageBits
)

// namePage has names, each with a NUL byte.
type namePage struct {
	text  []byte
	ends  [pageLen + 1]uint32 // where in text name i-1 of the page ends, and i begins
	asked [pageLen]btf.Reach  // of each, for a query, how far to look from types of that name
}

// contentPage has contents.
type contentPage struct {
	words  []uint32
	ends   [pageLen + 1]uint32 // where in words content i-1 of the page ends, and i begins
	entity [pageLen]uint32     // of each
}

// goOn returns the pages for n items more than have, of which the last one is a copy if it is not full.
func goOn[P any](pages []*P, have, n int) []*P {
	all := make([]*P, (have+n+pageLen-1)>>pageBits)
	copy(all, pages)
	if n == 0 {
		return all
	}
	for i := have >> pageBits; i < len(all); i++ {
		p := new(P)
		if all[i] != nil {
			*p = *all[i]
		}
		all[i] = p
	}
	return all
}

// newState returns what is known at the beginning: the empty name.
func newState() *state {
	s := &state{names: []*namePage{{text: []byte{0}}}, numNames: 1, textBytes: 1}
	s.names[0].ends[1] = 1
	return s
}

// strings returns names in the order of the string section.
func (s *state) strings() ([]uint32, error) {
	if s.list == nil {
		return nil, nil
	}
	return s.list.get()
}

// name returns a name with its NUL byte.
func (s *state) name(i uint32) []byte {
	p, i := s.names[i>>pageBits], i%pageLen
	return p.text[p.ends[i]:p.ends[i+1]]
}

// asked says how far a query looks from types of a name.
func (s *state) asked(i uint32) btf.Reach { return s.names[i>>pageBits].asked[i%pageLen] }

func (s *state) content(i uint32) []uint32 {
	p, i := s.contents[i>>pageBits], i%pageLen
	return p.words[p.ends[i]:p.ends[i+1]]
}

// bytes returns how many bytes types take.
func (s *state) bytes(types []uint32) (n int) {
	for _, c := range types {
		n += 4 * len(s.content(c))
	}
	return n
}

// entity returns the entity of a content.
func (s *state) entity(i uint32) uint32 { return s.contents[i>>pageBits].entity[i%pageLen] }

// nameGuesses and refGuesses are what came last in a context, by a hash of that. Each kernel begins with empty ones.
type (
	nameGuesses struct{ far, near [guessSize]uint32 }
	refGuesses  struct {
		far  [guessSize]farRef
		near [guessSize]uint32
	}
)

const (
	guessBits = 16
	guessSize = 1 << guessBits
)

// farRef is the entity that came last in a context, and at which distance, as an int32. They are next to each other because both are
// needed at once, and seldom in the cache.
type farRef struct{ entity, distance uint32 }

// slot is where a context has its guess.
func slot(a, b uint32) uint32 {
	return (a*0x9e3779b1 + b*0x85ebca77 + 0x27d4eb2f) * 0xc2b2ae3d >> (32 - guessBits)
}

// class says what is predicted alike.
type class uint8

const (
	classType   class = iota // the type itself
	classMember              // of structs and unions
	classParam
	classEnum
	classFunc  // a function's prototype
	classOther // what arrays, sections and tags refer to
	numClasses
)

// elemClass is the class of a kind's elements and extra words.
func elemClass(k btf.Kind) class {
	switch k {
	case btf.KindStruct, btf.KindUnion:
		return classMember
	case btf.KindFuncProto:
		return classParam
	case btf.KindEnum, btf.KindEnum64:
		return classEnum
	}
	return classOther
}

// nameless are the kinds whose types have no name.
func nameless(k btf.Kind) bool {
	switch k {
	case btf.KindPtr, btf.KindArray, btf.KindVolatile, btf.KindConst, btf.KindRestrict, btf.KindFuncProto:
		return true
	}
	return false
}

// hasCount says whether the lower bits of a kind's second word are used.
func hasCount(k btf.Kind) bool { return len(k.Shape().Elem) > 0 || k == btf.KindFunc }
