// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"github.com/btfgen/btfgen/internal/btf"
)

// state is a decoded kernel: its types and strings, and those of its ancestors, with which it shares memory. The modules of a
// kernel have a state of their own. A state does not change once it is decoded, and is safe for concurrent use.
type state struct {
	// Names are numbered from 0, the empty one.
	names     []*namePage
	numNames  int
	textBytes int // of all names

	// Contents are numbered from 0. They have the words of the type's record, with numbers of names for offsets, and entities
	// for type IDs.
	contents    []*contentPage
	numContents int
	numWords    int // of all contents
	numEnts     uint32

	types []uint32                 // contents in the order of type IDs
	list  func() ([]uint32, error) // names in the order of the string section
	rest  []byte                   // of the BTF: all but types and strings

	base  *state   // of modules: their kernel. Numbers of names and entities of it have the bit inBase
	found []uint32 // of a state for a query: the contents that it selects, ascending
}

const inBase = 1 << 31

// A page has pageLen names or contents, the last page fewer. States share full pages with the states derived from them.
const (
	pageBits = 10
	pageLen  = 1 << pageBits
)

type namePage struct {
	text  []byte              // names, each with a NUL byte
	ends  [pageLen + 1]uint32 // name i is text[ends[i]:ends[i+1]]
	asked [pageLen]btf.Reach  // of a state for a query: how far to look from types of the name
}

type contentPage struct {
	words  []uint32
	ends   [pageLen + 1]uint32 // content i is words[ends[i]:ends[i+1]]
	entity [pageLen]uint32
}

// extend returns the pages for n items more than have. The last page of the given ones is copied if it is not full.
func extend[P any](pages []*P, have, n int) []*P {
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

// newState returns the parent of kernels without a parent. It has the empty name.
func newState() *state {
	s := &state{names: []*namePage{{text: []byte{0}}}, numNames: 1, textBytes: 1, list: func() ([]uint32, error) { return nil, nil }}
	s.names[0].ends[1] = 1
	return s
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

// numBase returns how many types the base has.
func (s *state) numBase() int {
	if s.base == nil {
		return 0
	}
	return len(s.base.types)
}

// layout describes the records of a kind.
type layout struct {
	third   btf.Word
	first   uint8 // index of the first element
	words   uint8 // of an element, or 0
	names   uint8 // words if elements begin with a name, else 0
	ref     bool  // whether the second word of an element is a reference
	named   bool  // whether types of the kind can have names
	counted bool  // whether the low bits of the second word are used
}

var layouts = func() (l [btf.NumKinds]layout) {
	for i := range l {
		k := btf.Kind(i)
		s := k.Shape()
		l[i] = layout{
			third: s.Third, first: uint8(3 + len(s.Extra)), words: uint8(len(s.Elem)),
			named: true, counted: len(s.Elem) > 0 || k == btf.KindFunc,
		}
		if len(s.Elem) > 0 && s.Elem[0] == btf.Name {
			l[i].names, l[i].ref = uint8(len(s.Elem)), s.Elem[1] == btf.Ref
		}
		switch k {
		case btf.KindFuncProto, btf.KindPtr, btf.KindArray, btf.KindVolatile, btf.KindConst, btf.KindRestrict:
			l[i].named = false
		}
	}
	return l
}()

func kindOf(w []uint32) btf.Kind { return btf.Kind(w[1] >> 24 & 0x7f) }

// eachRef yields the indices of the references in a record.
func eachRef(w []uint32, yield func(int)) {
	shape := kindOf(w).Shape()
	if shape.Third == btf.Ref {
		yield(2)
	}
	at := 3
	for _, x := range shape.Extra {
		if x == btf.Ref {
			yield(at)
		}
		at++
	}
	for j, x := range shape.Elem {
		if x == btf.Ref {
			for i := at + j; i < len(w); i += len(shape.Elem) {
				yield(i)
			}
		}
	}
}

// eachName yields the indices of the names in a record, in ascending order.
func eachName(w []uint32, yield func(int)) {
	yield(0)
	if l := &layouts[kindOf(w)]; l.names > 0 {
		for i := int(l.first); i < len(w); i += int(l.names) {
			yield(i)
		}
	}
}
