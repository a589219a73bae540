// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

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
}

// head has the counts that a payload begins with.
type head struct {
	names, textBytes, contents, words, nameRanks, entRanks, types, strings int
}

// decode returns the state of a payload, which it does not retain. base is nil except for modules. size is the size of the BTF in
// bytes and bounds the state. If q is not nil, the state notes what q selects.
//
// A goroutine each decodes the names, the order of types, the contents and the references. Another one decodes the order of strings,
// which may go on after decode has returned.
func decode(ctx context.Context, parent, base *state, payload []byte, size int64, q *Query) (*state, error) {
	r := &reader{parent: parent}
	if err := r.readHead(payload, size); err != nil {
		return nil, err
	}
	r.extend(base)
	strings := make([]btfa.Cursor, orderStreams)
	for i := range strings {
		strings[i] = btfa.NewCursor(bytes.Clone(r.s[streamStrings+i].Rest()))
	}
	st := r.state
	refs := &refReader{reader: r, base: int64(st.numBase()), told: ranks{most: r.entRanks}, ready: make(chan int, r.contents>>pageBits+2)}
	names := begin(ctx, func() (struct{}, error) { return struct{}{}, r.readNames() })
	types := begin(ctx, func() (struct{}, error) { return struct{}{}, r.readTypes(refs) })
	contents := begin(ctx, func() (struct{}, error) {
		defer close(refs.ready)
		err := (&contentReader{reader: r, nextNew: uint32(parent.numNames), told: ranks{most: r.nameRanks}}).read(refs)
		_, unnamed := names.get()
		_, disordered := types.get()
		return struct{}{}, cmp.Or(r.fail(), err, unnamed, disordered)
	})
	listed := begin[[]uint32]
	if q != nil { // the strings of most kernels are not needed
		listed = onDemand[[]uint32]
	}
	st.list = listed(ctx, func() ([]uint32, error) {
		return readStrings(parent.list, parent.numNames, st, contents, strings, r.strings)
	})
	referred := begin(ctx, func() (struct{}, error) {
		err := refs.read(types)
		names.get() // contents may have ended without waiting for these
		types.get()
		return struct{}{}, cmp.Or(err, end(r.s[:], 0))
	})
	_, err := contents.get()
	_, failed := referred.get()
	if err = cmp.Or(err, failed); err == nil && q != nil {
		err = r.ask(q)
	}
	if err != nil {
		return nil, err
	}
	return st, nil
}

var errWrong = errors.New("numbers do not fit together")

// fail returns the first error of the streams that references do not use.
func (r *reader) fail() error {
	for i := range r.s[:streamRefFar] {
		if r.s[i].Err != nil {
			return fmt.Errorf("%s: %w", streamTexts[i], r.s[i].Err)
		}
	}
	return nil
}

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
	r.nameRanks = c.Count(n, "names listed by number")
	r.entRanks = c.Count(n, "types listed by number")
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

// readTypes reads the order of types. It passes the IDs of types with new contents to refs.
func (r *reader) readTypes(refs *refReader) error {
	p, st, n := r.parent, r.state, r.types
	o := newOrderReader(r.s[streamTypes:streamStrings], len(p.types))
	if o.same(n) {
		st.types = p.types
	} else {
		st.types = make([]uint32, 0, n)
	}
	next, limit := uint32(p.numContents), uint32(st.numContents)
	refs.ids = make([]uint32, 0, r.contents)
	fresh := func(entity uint32) {
		if next == limit {
			o.s[orderRuns].Fail(errWrong)
			return
		}
		st.contents[next>>pageBits].entity[next%pageLen] = entity
		st.types = append(st.types, next)
		refs.ids = append(refs.ids, uint32(refs.base)+uint32(len(st.types)))
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
					fresh(p.entity(c))
				}
			}
		case runNew:
			if uint32(run) > limit-next {
				return cmp.Or(o.err(), errWrong)
			}
			for range run {
				st.numEnts++
				fresh(st.numEnts)
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

// readStrings reads the order of n strings from its streams. contents is done when the types of st are complete. parent is the list
// of the parent, which has names names.
func readStrings(parent *later[[]uint32], names int, st *state, contents *later[struct{}], s []btfa.Cursor, n int) ([]uint32, error) {
	from, err := parent.get()
	if err != nil {
		return nil, err
	}
	o := newOrderReader(s, len(from))
	if o.same(n) {
		return from, end(s, streamStrings)
	}
	next, limit := uint32(names), uint32(st.numNames)
	out := make([]uint32, 0, min(n, int(limit)))
	var uses *uses
	for len(out) < n && o.err() == nil {
		if len(out) >= cap(out) {
			return nil, errWrong // a name twice
		}
		first := len(out)
		switch kind, run := o.run(min(n, cap(out)) - len(out)); kind {
		case runCopy:
			for o.start(); run > 0 && o.err() == nil; {
				at, end := o.take(run)
				run -= end - at
				out = append(out, from[at:end]...)
			}
		case runDerived:
			if uses == nil {
				if _, err := contents.get(); err != nil {
					return nil, err
				}
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

// Codes of names. From nameRank on they are ranks, see rankCodes.
const (
	nameNext   = 0 // the new name behind the last one
	nameFar    = 1 // the one that came last after these two
	nameNear   = 2 // the one that came last after this one
	nameEmpty  = 3
	nameJump   = 4 // a new name, at a distance from the one behind the last one
	nameListed = 5 // by number, the first time
	nameRank   = 6
)

// Codes of references. From refRank on they are ranks.
const (
	refListed = 0 // by distance, the first time
	refFar    = 1 // the one that came last with these two names
	refNear   = 2 // the one that came last with this name
	refHere   = 26
	refReach  = 23 // by distance: refHere-refReach to refHere+refReach
	refSame   = 50 // at the distance that came last with these two names
	refRank   = 51
)

// rankCodes has the first codes of ranks among what was listed. The first are ranks counted from the beginning; the next are counted
// from the end; the others are the upper bits of either. The lower 8 bits of these are in another stream.
type rankCodes struct {
	first, last, firstHigh, lastHigh int

	far int // the first stream of large numbers
}

const rankNumber = 255 // the rank is a large number

var (
	nameCodes = rankCodes{nameRank, 96, 156, 206, streamNameFar}
	refCodes  = rankCodes{refRank, 115, 160, 208, streamRefFar}
)

// Contents are read in two passes, which share no stream: first all but references, then these, which need the order of types. The
// second pass runs in parallel, a page behind.

// contentReader reads the new contents except for their references.
type contentReader struct {
	*reader
	guess   *nameGuesses
	nextNew uint32 // the new name to be used next
	last    uint32 // the last name of a type
	told    ranks
	err     error
}

// read reads the contents, and sends refs how many have been read.
func (r *contentReader) read(refs *refReader) error {
	if r.contents > 0 {
		r.guess = new(nameGuesses)
	}
	kinds, counts := &r.s[streamKinds], &r.s[streamCounts]
	// Pages share one piece of memory, which begins with what the first page has already.
	var page *contentPage
	var words []uint32 // from the beginning of the page
	at := 0            // of these, what has been read
	for i := range r.contents {
		n := r.parent.numContents + i
		if page == nil {
			page = r.state.contents[n>>pageBits]
			words = make([]uint32, len(page.words)+r.words)
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
	if at < len(words) || r.contents == 0 && r.words > 0 {
		return errWrong
	}
	if page != nil {
		page.words = words
	}
	refs.ready <- r.contents
	return r.err
}

// content reads the words of a content.
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
		name = r.newName(btfa.Unzigzag(readFar(r.s[streamNameFar:])))
	case nameListed:
		name = r.listedName(readFar(r.s[streamNameFar:]))
	default:
		var err error
		if name, err = r.told.read(&r.s, &nameCodes, c, &r.s[streamNameLow+int(cl)]); err != nil {
			r.err = err
		}
	}
	*far, *near = name, name
	return name
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

// listedName returns the name with a number, which counts those of the base last, and lists it.
func (r *contentReader) listedName(v uint64) uint32 {
	if n := uint64(r.state.numNames); v >= n {
		if r.state.base == nil || v-n >= uint64(r.state.base.numNames) {
			r.err = errWrong
			return 0
		}
		v = v - n | inBase
	}
	r.err = cmp.Or(r.err, r.told.add(uint32(v)))
	return uint32(v)
}

// ranks are the values that were listed.
type ranks struct {
	all  []uint32
	most int
}

func (t *ranks) add(v uint32) error {
	if len(t.all) == t.most {
		return errWrong
	}
	t.all = append(t.all, v)
	return nil
}

// read returns the value for a code.
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
		rank = readFar(s[c.far:])
	}
	if rank >= uint64(len(t.all)) {
		return 0, errWrong
	}
	return t.all[rank], nil
}

// refReader reads the references of new contents.
type refReader struct {
	*reader
	guess *refGuesses
	last  uint32 // the last name of a type
	told  ranks
	base  int64 // number of types of the base
	err   error

	ids   []uint32 // of the types with new contents
	ready chan int // how many contents have been read except for their references
}

// read reads the references of contents until ready is closed.
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
			r.content(w, kindOf(w), r.ids[have])
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
		d := btfa.Unzigzag(readFar(r.s[streamRefFar:]))
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
		if to, err = r.told.read(&r.s, &refCodes, c, &r.s[streamRefLow+int(cl)]); err != nil {
			r.err = err
		}
	}
	*far, *near = to, to
	return to
}

// at returns the entity of the type with an ID.
func (r *refReader) at(id int64) uint32 {
	if i := id - r.base - 1; uint64(i) < uint64(len(r.state.types)) {
		return r.state.entity(r.state.types[i])
	}
	return r.outside(id)
}

// outside returns the entity of the type of the base with an ID, 0 for void.
func (r *refReader) outside(id int64) uint32 {
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
