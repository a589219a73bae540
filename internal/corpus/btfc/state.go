// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"slices"
	"unsafe"

	"github.com/btfgen/btfgen/internal/btf"
)

// state is a decoded chunk: its types and strings, and those of its ancestors, with which it shares memory. A state does not change
// once it is decoded, and is safe for concurrent use.
type state struct {
	names    pages[byte]   // each with a NUL byte; number 0 is empty. Their notes say how far a query looks from types of the name
	contents pages[uint32] // records with numbers of names for offsets, and entities for type IDs.
	numEnts  uint32

	units     []unit
	front     typeList // the types at the front
	all       typeList // all types
	atFront   []bool   // whether a type of all is at the front
	strings   []uint32 // names in the order of the string sections, of all units
	backNames []span   // the names at the back

	shared *shared // the memory of names and contents
	lists  int64   // bytes of the other lists

	// A state for a query is decoded from the front alone. It has the types at the front, no others and no strings, and empty names for
	// those at the back. These are the contents that the query selects, ascending.
	found []uint32
}

// typeList is some of the types, in the order of type IDs, of all units.
type typeList struct{ contents, entities []uint32 }

func (l *typeList) len() int { return len(l.contents) }

// grow makes room for n types.
func (l *typeList) grow(n int) { l.contents, l.entities = make([]uint32, 0, n), make([]uint32, 0, n) }

// add appends a type.
func (l *typeList) add(content, entity uint32) {
	l.contents, l.entities = append(l.contents, content), append(l.entities, entity)
}

// append appends types first to end of another list.
func (l *typeList) append(o *typeList, first, end int) {
	l.contents, l.entities = append(l.contents, o.contents[first:end]...), append(l.entities, o.entities[first:end]...)
}

// span is some consecutive numbers.
type span struct{ first, end uint32 }

// unit is a kernel's or a module's BTF, or a text of lines, with so many types and strings of a state.
type unit struct {
	name    string // name of a module, or what each line of a text begins with
	types   int
	front   int // types at the front
	strings int
	size    int64  // bytes
	rest    []byte // all but types and strings. A text has none
}

// newState returns the parent of chunks without a parent. It has the empty name.
func newState() *state {
	s := new(state)
	s.names = s.names.extend(1, 1)
	s.names.push(1)
	return s
}

// namesOnly returns a state without the types of s.
func (s *state) namesOnly() *state {
	return &state{names: s.names, strings: s.strings, shared: s.shared}
}

// shared is memory of a state that the states of its descendants share.
type shared struct {
	parent *shared
	bytes  int64 // bytes that are not the parent's
}

// memory returns about how many bytes of memory a state takes, with what it shares.
func (s *state) memory() int {
	return s.names.size + 4*(s.contents.size+s.names.count+s.contents.count+int(s.numEnts))
}

// numStrings returns the number of strings of all units.
func (s *state) numStrings() (n int) {
	for i := range s.units {
		n += s.units[i].strings
	}
	return n
}

func (s *state) content(i uint32) []uint32 { return s.contents.at(i) }

// asked says how far a query looks from types of a name.
func (s *state) asked(i uint32) btf.Reach {
	if notes := s.names.all[i>>pageBits].notes; notes != nil {
		return notes[i%pageLen]
	}
	return 0
}

// bytes returns how many bytes types take.
func (s *state) bytes(types []uint32) (n int) {
	for _, c := range types {
		n += 4 * len(s.content(c))
	}
	return n
}

// pages is a list of items, each of them a slice. A list that extends another one shares its full pages.
type pages[T any] struct {
	all   []*page[T]
	count int // items
	size  int // sum of the lengths of all items
	room  []T // memory for more items, with no length
}

const (
	pageBits = 10
	pageLen  = 1 << pageBits
)

type page[T any] struct {
	data  []T
	ends  [pageLen + 1]uint32 // item i is data[ends[i]:ends[i+1]]
	notes []btf.Reach         // notes of the items, or nil if all are 0
}

// extend returns a list with room for n more items of size altogether. It copies the last page if that is not full.
func (p pages[T]) extend(n, size int) pages[T] {
	if n == 0 {
		return p
	}
	p.all = append(make([]*page[T], 0, (p.count+n)>>pageBits+1), p.all...)
	if p.count%pageLen > 0 {
		last := *p.all[len(p.all)-1]
		last.data = append(make([]T, 0, len(last.data)+size), last.data...)
		last.notes = slices.Clone(last.notes)
		p.room = last.data[len(last.data):]
		p.all[len(p.all)-1] = &last
	} else {
		p.room = make([]T, 0, size)
	}
	for len(p.all)<<pageBits < p.count+n {
		p.all = append(p.all, new(page[T]))
	}
	return p
}

// growth returns how many bytes extend allocates for n more items of size altogether, each of width bytes.
func (p *pages[T]) growth(n, size, width int) int64 {
	if n == 0 {
		return 0
	}
	last := 0
	if p.count%pageLen > 0 {
		last = len(p.all[len(p.all)-1].data)
	}
	added := (p.count+n+pageLen-1)>>pageBits - p.count>>pageBits
	return int64(width)*int64(size+last) + int64(added)*int64(unsafe.Sizeof(page[T]{})+pageLen)
}

// push adds an item of size zeros, for which extend has made room, and returns it.
func (p *pages[T]) push(size int) []T {
	page, i := p.all[p.count>>pageBits], p.count%pageLen
	if i == 0 {
		page.data = p.room
	}
	at := len(page.data)
	page.data = page.data[:at+size]
	page.ends[i+1] = uint32(at + size)
	p.room = p.room[size:size]
	p.count++
	p.size += size
	return page.data[at:]
}

// skip adds n empty items, for which extend has made room.
func (p *pages[T]) skip(n int) {
	for range n {
		p.push(0)
	}
}

func (p *pages[T]) at(i uint32) []T {
	page, i := p.all[i>>pageBits], i%pageLen
	return page.data[page.ends[i]:page.ends[i+1]]
}

// layout describes the records of a kind.
type layout struct {
	third   btf.Word
	first   uint8 // index of the first element
	words   uint8 // words per element, or 0
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

// recordLen returns the words of a record that begins with the second word given, or 0 if there is no such record.
func recordLen(second uint32) uint64 {
	k, n := btf.Kind(second>>24&0x7f), uint64(second&0xffffff)
	if k == btf.KindVoid || int(k) >= btf.NumKinds || n > 0 && !layouts[k].counted {
		return 0
	}
	return uint64(layouts[k].first) + uint64(layouts[k].words)*n
}

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
