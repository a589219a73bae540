// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"cmp"
	"fmt"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btfa"
)

// What the code of a name means, and that of a reference. From codeRank on it is one that was listed by number before.
const (
	nameNext   = 0 // the new name behind the last one
	nameFar    = 1 // the one that came last after these two
	nameNear   = 2 // the one that came last after this one
	nameEmpty  = 3
	nameJump   = 4 // a new name, at a distance from the one behind the last one
	nameListed = 5 // by number, the first time
	nameRank   = 6 // and on: one that was told before, see rankCodes

	refListed = 0 // by distance, the first time
	refFar    = 1 // the one that came last with these two names
	refNear   = 2 // the one that came last with this name
	refHere   = 26
	refReach  = 23 // by distance: refHere-refReach to refHere+refReach
	refSame   = 50 // at the distance that came last with these two names
	refRank   = 51
)

// rankCodes are where the codes begin of what was told before. The first are ranks, counted from the first that was told;
// the next, counted from the last; and of both the upper bits of higher ranks, whose lower 8 are in another stream.
type rankCodes struct {
	first, last, firstHigh, lastHigh int

	far int // the first stream of what is far away
}

const rankNumber = 255 // the rank is a number in another stream

var (
	nameCodes = rankCodes{nameRank, 96, 156, 206, streamNameFar}
	refCodes  = rankCodes{refRank, 115, 160, 208, streamRefFar}
)

// A content is read in two passes, which share no stream: the first reads all but references, and the second these, for which it needs the order of
// types. So both can be at work at once, the second a page behind.

// contentReader reads the new contents but for their references.
type contentReader struct {
	s       *[numStreams]btfa.Cursor
	parent  *state
	state   *state
	guess   *nameGuesses
	nextNew uint32 // names: the one behind the last new one that was used
	last    uint32 // name of the last content's type
	told    ranks
	err     error
}

func newContentReader(r *reader, h head) *contentReader {
	return &contentReader{s: &r.s, parent: r.parent, state: r.state, nextNew: uint32(r.parent.numNames), told: ranks{most: h.nameRanks}}
}

// read reads the contents, and tells refs how many have been read.
func (r *contentReader) read(refs *refReader) error {
	contents := r.state.numContents - r.parent.numContents
	if contents > 0 {
		r.guess = new(nameGuesses)
	}
	kinds, counts := &r.s[streamKinds], &r.s[streamCounts]
	// Pages share one piece of memory, which begins with what the first has already.
	var page *contentPage
	var words []uint32 // from where the page begins
	at := 0            // of these, what has been read
	for i := range contents {
		n := r.parent.numContents + i
		if page == nil {
			page = r.state.contents[n>>pageBits]
			words = make([]uint32, len(page.words)+r.state.numWords-r.parent.numWords)
			at = copy(words, page.words)
		} else if n%pageLen == 0 {
			page.words, words, at = words[:at], words[at:], 0
			refs.ready <- i
			page = r.state.contents[n>>pageBits]
		}
		b := kinds.Byte()
		k := btf.Kind(b & 0x7f)
		if k == btf.KindVoid || int(k) >= btf.NumKinds {
			if kinds.Err == nil {
				kinds.Fail(fmt.Errorf("kind %d", k))
			}
			return nil
		}
		l := &layouts[k]
		count := uint64(0)
		if l.counted {
			count = counts.Uvarint()
		}
		need := uint64(l.first) + uint64(l.words)*count
		if count > 1<<24-1 || need > uint64(len(words)-at) {
			return errWrong
		}
		w := words[at : at+int(need)]
		at += int(need)
		w[1] = uint32(b)<<24 | uint32(count)
		r.content(w, k, l)
		page.ends[n%pageLen+1] = uint32(at)
	}
	if at < len(words) || contents == 0 && r.state.numWords > r.parent.numWords {
		return errWrong
	}
	if page != nil {
		page.words = words
	}
	refs.ready <- contents
	return r.err
}

// content reads the words of one content.
func (r *contentReader) content(w []uint32, k btf.Kind, l *layout) {
	if l.named {
		w[0] = r.name(classType, uint32(k), r.last)
	}
	if w[0] != 0 {
		r.last = w[0]
	}
	if l.third == btf.Size {
		if k.IsComposite() {
			w[2] = uint32(r.s[streamSizes].Uvarint())
		} else {
			w[2] = uint32(r.s[streamNumbers].Uvarint())
		}
	}
	if len(w) == 3 {
		return
	}
	if l.first > 3 {
		for i, word := range k.Shape().Extra {
			if word != btf.Ref {
				w[3+i] = uint32(r.s[streamNumbers].Uvarint())
			}
		}
	}
	x, cl := w[l.first:], l.class
	prev, before := w[0], uint32(k)
	number := uint32(0)
	switch k {
	case btf.KindStruct, btf.KindUnion:
		for ; len(x) >= 3; x = x[3:] {
			name := r.name(cl, prev, before)
			x[0] = name
			number += uint32(btfa.UnpackOffset(r.s[streamOffsets].Uvarint()))
			x[2] = number
			prev, before = name, prev
		}
	case btf.KindFuncProto:
		for ; len(x) >= 2; x = x[2:] {
			name := r.name(cl, prev, before)
			x[0] = name
			prev, before = name, prev
		}
	case btf.KindEnum, btf.KindEnum64:
		n := int(l.words)
		for ; len(x) >= n; x = x[n:] {
			name := r.name(cl, prev, before)
			x[0] = name
			number += uint32(btfa.Unzigzag(r.s[streamValues].Uvarint()))
			x[1] = number
			if n == 3 {
				x[2] = uint32(r.s[streamNumbers].Uvarint())
			}
			prev, before = name, prev
		}
	case btf.KindDatasec:
		for ; len(x) >= 3; x = x[3:] {
			number += uint32(btfa.Unzigzag(r.s[streamValues].Uvarint()))
			x[1] = number
			x[2] = uint32(r.s[streamNumbers].Uvarint())
			number += x[2]
		}
	}
}

// name reads a name that comes after two others.
func (r *contentReader) name(cl class, prev, before uint32) uint32 {
	far, near := &r.guess.far[slot(prev, before)], &r.guess.near[slot(prev, uint32(cl))]
	var name uint32
	switch c := r.s[streamNames+int(cl)].Byte(); c {
	case nameNext:
		name = r.newName(0)
	case nameFar:
		name = *far
	case nameNear:
		name = *near
	case nameEmpty:
	case nameJump:
		name = r.newName(btfa.Unzigzag(readFar(r.s, streamNameFar)))
	case nameListed:
		if v := readFar(r.s, streamNameFar); v < uint64(r.state.numNames) {
			name = uint32(v)
			r.err = cmp.Or(r.err, r.told.add(name))
		} else {
			r.err = errWrong
		}
	default:
		var err error
		if name, err = r.told.read(r.s, &nameCodes, c, &r.s[streamNameLow+int(cl)]); err != nil {
			r.err = err
		}
	}
	*far, *near = name, name
	return name
}

// readFar reads a number that is likely to be large, from a stream and the two behind it.
func readFar(s *[numStreams]btfa.Cursor, stream int) uint64 {
	low, mid := uint64(s[stream].Byte()), uint64(s[stream+1].Byte())
	return low | mid<<8 | s[stream+2].Uvarint()<<16
}

func (r *contentReader) newName(jump int64) uint32 {
	to := int64(r.nextNew) + jump
	if to < 0 || to >= int64(r.state.numNames) {
		r.err = errWrong
		return 0
	}
	r.nextNew = uint32(to) + 1
	return uint32(to)
}

// ranks is what was listed by number.
type ranks struct {
	all  []uint32
	most int
}

// add notes what is listed by number.
func (t *ranks) add(v uint32) error {
	if len(t.all) == t.most {
		return errWrong
	}
	t.all = append(t.all, v)
	return nil
}

// read reads what was listed by number before, whose code is code.
func (t *ranks) read(s *[numStreams]btfa.Cursor, c *rankCodes, code byte, low *btfa.Cursor) (uint32, error) {
	n, rank := int(code), uint64(0)
	switch {
	case n < c.last:
		rank = uint64(n - c.first)
	case n < c.firstHigh:
		rank = uint64(len(t.all) - 1 - (n - c.last))
	case n < c.lastHigh:
		rank = uint64(c.last - c.first + (n-c.firstHigh)<<8 + int(low.Byte()))
	case n < rankNumber:
		rank = uint64(len(t.all) - 1 - (c.firstHigh - c.last + (n-c.lastHigh)<<8 + int(low.Byte())))
	default:
		rank = readFar(s, c.far)
	}
	if rank >= uint64(len(t.all)) {
		return 0, errWrong
	}
	return t.all[rank], nil
}

// refReader reads the references of new contents.
type refReader struct {
	s      *[numStreams]btfa.Cursor
	parent *state
	state  *state
	guess  *refGuesses
	last   uint32 // name of the last content's type
	told   ranks
	err    error

	ids   []uint32 // of the types with new contents
	ready chan int // how many of these contents are there but for their references
}

func newRefReader(r *reader, h head) *refReader {
	return &refReader{
		s: &r.s, parent: r.parent, state: r.state, told: ranks{most: h.entRanks},
		ready: make(chan int, (r.state.numContents-r.parent.numContents)>>pageBits+2),
	}
}

// read reads until nothing more will be ready, once the order of types is there.
func (r *refReader) read(types *later[struct{}]) error {
	have := 0
	for n := range r.ready {
		if _, err := types.get(); err != nil {
			r.err = cmp.Or(r.err, err)
			continue
		}
		if r.guess == nil && n > 0 {
			r.guess = new(refGuesses)
		}
		for ; have < n; have++ {
			w := r.state.content(uint32(r.parent.numContents + have))
			r.content(w, btf.Kind(w[1]>>24&0x7f), r.ids[have])
		}
	}
	return r.err
}

// content reads the references of the type with an ID.
func (r *refReader) content(w []uint32, k btf.Kind, id uint32) {
	l := &layouts[k]
	if w[0] != 0 {
		r.last = w[0]
	}
	if l.third == btf.Ref {
		c := classType
		if k == btf.KindFunc {
			c = classFunc
		}
		w[2] = r.ref(c, id, uint32(k), r.last)
	}
	if len(w) == 3 {
		return
	}
	if l.first > 3 {
		for i, word := range k.Shape().Extra {
			if word == btf.Ref {
				w[3+i] = r.ref(classOther, id, uint32(k), uint32(i))
			}
		}
	}
	x, cl := w[l.first:], l.class
	switch k {
	case btf.KindStruct, btf.KindUnion, btf.KindFuncProto:
		prev, last, n := w[0], uint32(0), int(l.words)
		if k == btf.KindFuncProto {
			last = w[2]
		}
		for ; len(x) >= n; x = x[n:] {
			last = r.ref(cl, id, cmp.Or(x[0], last), prev)
			x[1] = last
			prev = x[0]
		}
	case btf.KindDatasec:
		for ; len(x) >= 3; x = x[3:] {
			x[0] = r.ref(cl, id, uint32(k), 0)
		}
	}
}

// ref reads a reference of the type with an ID, as an entity.
func (r *refReader) ref(cl class, id, name, before uint32) uint32 {
	last, near := &r.guess.far[slot(name, before)], &r.guess.near[slot(name, uint32(cl))]
	far, distance := &last.entity, &last.distance
	var to uint32
	switch c := r.s[streamRefs+int(cl)].Byte(); {
	case c == refFar:
		to = *far
	case c == refNear:
		to = *near
	case c == refListed:
		d := btfa.Unzigzag(readFar(r.s, streamRefFar))
		to = r.at(int64(id) + d)
		r.err = cmp.Or(r.err, r.told.add(to))
		*distance = uint32(d)
	case c < refSame:
		to = r.at(int64(id) + int64(c) - refHere)
		*distance = uint32(int32(c) - refHere)
	case c == refSame:
		to = r.at(int64(id) + int64(int32(*distance)))
	default:
		var err error
		if to, err = r.told.read(r.s, &refCodes, c, &r.s[streamRefLow+int(cl)]); err != nil {
			r.err = err
		}
	}
	*far, *near = to, to
	return to
}

// at returns the entity of the type with an ID, 0 for void.
func (r *refReader) at(id int64) uint32 {
	if id <= 0 || id > int64(len(r.state.types)) {
		if id != 0 {
			r.err = errWrong
		}
		return 0
	}
	return r.state.entity(r.state.types[id-1])
}
