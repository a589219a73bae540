// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
)

// reader decodes a payload to a state.
type reader struct {
	head
	s      [numStreams]btfa.Cursor
	parent *state
	state  *state
	ids    []uint32 // of the types with new contents
	old    []uint32 // their contents in the parent, or noContent
}

const noContent = ^uint32(0)

// head has the counts that a payload begins with.
type head struct {
	names, textBytes, contents, words, ranks, types, strings int
}

// decode returns the state of the payload of a part, which it does not retain. base is nil except for modules. size is the size of the BTF
// or the lines in bytes and bounds the state. If q is not nil, the state notes what q selects.
//
// The order of strings is decoded when it is needed, because most kernels are only parents of others.
func decode(p part, parent, base *state, payload []byte, size int64, q *Query) (*state, error) {
	r := &reader{parent: parent}
	if err := r.readHead(payload, size); err != nil {
		return nil, err
	}
	r.extend(base)
	strings := make([]btfa.Cursor, orderStreams)
	for i := range strings {
		strings[i] = btfa.NewCursor(bytes.Clone(r.s[streamStrings+i].Rest()))
	}
	st, n := r.state, r.strings
	named := r.readNames()
	err := r.readTypes()
	if err == nil {
		err = (&contentReader{reader: r, nextNew: uint32(parent.numNames)}).read()
	}
	if err = cmp.Or(err, named, end(r.s[:], 0)); err == nil && q != nil {
		err = r.ask(q)
	}
	if err != nil {
		return nil, err
	}
	room := min(n, st.numNames) // no name occurs twice
	if p == partExtras {
		room = min(n, int(size/lineBytes))
	}
	st.list = sync.OnceValues(func() ([]uint32, error) { return readStrings(parent, st, strings, n, room) })
	return st, nil
}

var errWrong = errors.New("numbers do not fit together")

// readHead reads the counts. Memory is allocated for them, so they are bounded by the payload: a word of a content takes half a byte
// or more, a byte of a name a 256th, and a type is a content of this payload or of an ancestor.
func (r *reader) readHead(payload []byte, size int64) (err error) {
	if r.s, err = split(payload); err != nil {
		return err
	}
	c := &r.s[streamHead]
	n := len(payload)
	most := int(size / 4)
	r.names = c.Count(n, "names")
	r.textBytes = c.Count(int(min(size, int64(n)<<8)), "bytes of names")
	r.contents = c.Count(n, "contents")
	r.words = c.Count(min(most, 2*n), "words")
	r.ranks = c.Count(n, "types listed by distance")
	r.types = c.Count(min(most/3, r.parent.numContents+r.contents), "types")
	r.strings = c.Count(int(size), "strings")
	if c.Err != nil {
		return fmt.Errorf("head: %w", c.Err)
	}
	p := r.parent
	if p.textBytes+r.textBytes+4*(p.numWords+r.words+p.numNames+r.names+p.numContents+r.contents) > limits.CorpusChain {
		return &limits.Exceeded{Max: limits.CorpusChain, What: "bytes that it is encoded against"}
	}
	return nil
}

// extend makes the state, with room for what is new.
func (r *reader) extend(base *state) {
	p := r.parent
	r.state = &state{
		names: extend(p.names, p.numNames, r.names), numNames: p.numNames + r.names, textBytes: p.textBytes + r.textBytes,
		contents: extend(p.contents, p.numContents, r.contents), numContents: p.numContents + r.contents, numWords: p.numWords + r.words,
		numEnts: p.numEnts, rest: bytes.Clone(r.s[streamRest].Rest()), base: base,
	}
}

// readNames reads the new names.
func (r *reader) readNames() error {
	text, shared := r.s[streamText].Rest(), r.s[streamShared].Rest()
	known := r.parent.numNames
	if len(shared) != r.names || r.names == 0 && r.textBytes+len(text) > 0 {
		return errWrong
	}
	if r.names == 0 {
		return nil
	}
	// Pages share one piece of memory, which begins with what the first page has already.
	page := r.state.names[known>>pageBits]
	begin := 0 // of the page
	out := make([]byte, len(page.text)+r.textBytes)
	at := copy(out, page.text)
	last := at
	for i, n := range shared {
		if i += known; i%pageLen == 0 {
			page, begin = r.state.names[i>>pageBits], at
		}
		own := bytes.IndexByte(text, 0) + 1
		if own == 0 || int(n) > max(at-last-1, 0) || int(n)+own > len(out)-at {
			return errWrong
		}
		start := at
		at += copy(out[at:], out[last:last+int(n)])
		at += copy(out[at:], text[:own])
		text = text[own:]
		last = start
		page.text = out[begin:at]
		page.ends[i%pageLen+1] = uint32(at - begin)
	}
	if at != len(out) || len(text) > 0 {
		return errWrong
	}
	return nil
}

// readTypes reads the order of types.
func (r *reader) readTypes() error {
	p, st, n := r.parent, r.state, r.types
	o := newOrderReader(r.s[streamTypes:streamStrings], len(p.types))
	st.types = make([]uint32, 0, n)
	next, limit := uint32(p.numContents), uint32(st.numContents)
	base := uint32(st.numBase())
	r.ids, r.old = make([]uint32, 0, r.contents), make([]uint32, 0, r.contents)
	fresh := func(entity, old uint32) {
		if next == limit {
			o.s[orderRuns].Fail(errWrong)
			return
		}
		st.contents[next>>pageBits].entity[next%pageLen] = entity
		st.types = append(st.types, next)
		r.ids = append(r.ids, base+uint32(len(st.types)))
		r.old = append(r.old, old)
		next++
	}
	for len(st.types) < n && o.err() == nil {
		switch kind, run := o.run(n - len(st.types)); kind {
		case runCopy, runChanged:
			for o.start(); run > 0 && o.err() == nil; {
				at, end := o.take(run)
				run -= end - at
				if kind == runCopy {
					st.types = append(st.types, p.types[at:end]...)
					continue
				}
				for _, c := range p.types[at:end] {
					fresh(p.entity(c), c)
				}
			}
		case runNew:
			if uint32(run) > limit-next {
				return cmp.Or(o.err(), errWrong)
			}
			for range run {
				st.numEnts++
				fresh(st.numEnts, noContent)
			}
		case runOld:
			for c, end := o.takeOld(run, p.numContents); c < end; c++ {
				st.types = append(st.types, c)
			}
		}
	}
	if next != limit {
		return cmp.Or(o.err(), errWrong)
	}
	return o.err()
}

// readStrings reads the order of n strings of a state from its streams. There may be up to room.
func readStrings(parent, st *state, s []btfa.Cursor, n, room int) ([]uint32, error) {
	from, err := parent.list()
	if err != nil {
		return nil, err
	}
	o := newOrderReader(s, len(from))
	next, limit := uint32(parent.numNames), uint32(st.numNames)
	if n > room {
		return nil, errWrong
	}
	out := make([]uint32, 0, n)
	var uses *uses
	for len(out) < n && o.err() == nil {
		first := len(out)
		switch kind, run := o.run(n - len(out)); kind {
		case runCopy:
			for o.start(); run > 0 && o.err() == nil; {
				at, end := o.take(run)
				run -= end - at
				out = append(out, from[at:end]...)
			}
		case runDerived:
			if uses == nil {
				uses = newUses(st, st.types)
				uses.pass(out)
			}
			if out = uses.take(out, run); len(out) < first+run {
				return nil, errWrong
			}
			continue
		case runNew:
			if uint32(run) > limit-next {
				return nil, errWrong
			}
			for range run {
				out = append(out, next)
				next++
			}
		case runOld:
			for c, end := o.takeOld(run, int(limit)); c < end; c++ {
				out = append(out, c)
			}
		}
		if uses != nil {
			uses.pass(out[first:])
		}
	}
	return out, end(s, streamStrings)
}

// uses yields the names of types in the order in which the types use them first.
type uses struct {
	st    *state
	types []uint32 // those behind names
	taken []bool
	names []uint32 // of the types before, those that are left
	room  []uint32
}

// usesAhead is the number of types whose names are listed at once. Their contents are scattered in memory, and a processor fetches
// them side by side if it has nothing else to do.
const usesAhead = 64

func newUses(st *state, types []uint32) *uses {
	return &uses{st: st, types: types, taken: make([]bool, st.numNames)}
}

// pass takes names out of the order.
func (u *uses) pass(names []uint32) {
	for _, n := range names {
		u.taken[n] = true
	}
}

// take appends the next n names that have not been taken to out, and takes them. There may be fewer.
func (u *uses) take(out []uint32, n int) []uint32 {
	for end := len(out) + n; len(out) < end; {
		if len(u.names) == 0 && !u.more() {
			break
		}
		name := u.names[0]
		u.names = u.names[1:]
		if name < inBase && !u.taken[name] {
			u.taken[name] = true
			out = append(out, name)
		}
	}
	return out
}

// more lists the names of the next types, and reports whether there are any.
func (u *uses) more() bool {
	types := u.types[:min(usesAhead, len(u.types))]
	u.types = u.types[len(types):]
	var contents [usesAhead][]uint32
	var kinds [usesAhead]uint32
	for i, c := range types {
		contents[i] = u.st.content(c)
	}
	for i := range types {
		kinds[i] = contents[i][1]
	}
	u.room = u.room[:0]
	for i := range types {
		w := contents[i]
		u.room = append(u.room, w[0])
		if l := &layouts[kinds[i]>>24&0x7f]; l.names > 0 {
			for i := int(l.first); i < len(w); i += int(l.names) {
				u.room = append(u.room, w[i])
			}
		}
	}
	u.names = u.room
	return len(types) > 0
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

// Codes of references.
const (
	refDistance = 0   // by distance; listed
	refGuess    = 1   // the one that came last with these two names
	refHere     = 25  // by distance: refHere-refReach to refHere+refReach
	refReach    = 23  //
	refRank     = 49  // and more: by rank among those that were listed
	refFarRank  = 255 // by a large rank
)

// contentReader reads the new contents.
type contentReader struct {
	*reader
	guess    *guesses
	id       uint32 // of the type that is read
	nextNew  uint32 // the new name to be used next
	lastName uint32 // the name read last, unless that was none
	base     int64  // number of types of the base
	listed   []uint32
	err      error
}

// read reads the contents.
func (r *contentReader) read() error {
	if r.contents == 0 {
		if r.words > 0 {
			return errWrong
		}
		return nil
	}
	r.guess, r.base = new(guesses), int64(r.state.numBase())
	kinds, counts := &r.s[streamKinds], &r.s[streamCounts]
	// Pages share one piece of memory, which begins with what the first page has already.
	page := r.state.contents[r.parent.numContents>>pageBits]
	words := make([]uint32, len(page.words)+r.words) // from the beginning of the page
	at := copy(words, page.words)
	for i, id := range r.ids {
		n := r.parent.numContents + i
		if i > 0 && n%pageLen == 0 {
			page.words, words, at = words[:at], words[at:], 0
			page = r.state.contents[n>>pageBits]
		}
		b := kinds.Byte()
		k := btf.Kind(b & 0x7f)
		if k == btf.KindVoid || int(k) >= btf.NumKinds {
			return cmp.Or(kinds.Err, fmt.Errorf("kind %d", k))
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
		if old := r.old[i]; old != noContent {
			r.guess.learn(r.parent.content(old))
		}
		r.id = id
		codeContent(r, w, &r.guess.last)
		page.ends[n%pageLen+1] = uint32(at)
	}
	if page.words = words; at < len(words) {
		return errWrong
	}
	return r.err
}

func (r *contentReader) name(stream int, prev, before uint32, v *uint32) {
	guess := &r.guess.names[slot(prev, before)]
	var name uint32
	switch c := r.s[stream].Byte(); c {
	case nameNext:
		name = r.newName(0)
	case nameGuess:
		name = *guess
	case nameEmpty:
	case nameJump:
		name = r.newName(btfa.Unzigzag(r.s[streamNameNumbers].Uvarint()))
	case nameNumber:
		v := r.s[streamNameNumbers].Uvarint()
		if n := uint64(r.state.numNames); v >= n {
			v = v - n | inBase
		}
		name = r.known(int64(v))
	default:
		name = r.known(int64(r.lastName) + int64(c) - nameNear)
	}
	if name != 0 {
		r.lastName = name
	}
	*guess, *v = name, name
}

// newName returns a new name and moves on to the next one.
func (r *contentReader) newName(jump int64) uint32 {
	to := int64(r.nextNew) + jump
	if to < 0 || to >= int64(r.state.numNames) {
		r.err = errWrong
		return 0
	}
	r.nextNew = uint32(to) + 1
	return uint32(to)
}

// known checks the number of a name of the state or its base.
func (r *contentReader) known(v int64) uint32 {
	limit := int64(r.state.numNames)
	if v >= inBase && r.state.base != nil {
		limit = inBase + int64(r.state.base.numNames)
	}
	if v < 0 || v >= limit {
		r.err = errWrong
		return 0
	}
	return uint32(v)
}

func (r *contentReader) ref(stream int, name, before uint32, v *uint32) uint32 {
	guess := &r.guess.refs[slot(name, before)]
	var to uint32
	switch c := r.s[stream].Byte(); {
	case c == refGuess:
		to = *guess
	case c == refDistance:
		to = r.at(int64(r.id) + btfa.Unzigzag(r.s[streamRefDistances].Uvarint()))
		if len(r.listed) == r.ranks {
			r.err = errWrong
			return 0
		}
		r.listed = append(r.listed, to)
	case c < refRank:
		to = r.at(int64(r.id) + int64(c) - refHere)
	default:
		rank := uint64(c - refRank)
		if c == refFarRank {
			rank = r.s[streamRefRanks].Uvarint()
		}
		if rank >= uint64(len(r.listed)) {
			r.err = errWrong
			return 0
		}
		to = r.listed[rank]
	}
	*guess, *v = to, to
	return to
}

func (r *contentReader) number(stream int, before uint32, v *uint32) {
	x := r.s[stream].Uvarint()
	switch stream {
	case streamOffsets:
		*v = before + uint32(btfa.UnpackOffset(x))
	case streamValues:
		*v = before + uint32(btfa.Unzigzag(x))
	default:
		*v = uint32(x)
	}
}

// at returns the entity of the type with an ID.
func (r *contentReader) at(id int64) uint32 {
	if i := id - r.base - 1; uint64(i) < uint64(len(r.state.types)) {
		return r.state.entity(r.state.types[i])
	}
	return r.outside(id)
}

// outside returns the entity of the type of the base with an ID, 0 for void.
func (r *contentReader) outside(id int64) uint32 {
	switch {
	case id == 0:
		return 0
	case id < 0 || id > r.base:
		r.err = errWrong
		return 0
	}
	base := r.state.base
	return base.entity(base.types[id-1]) | inBase
}
