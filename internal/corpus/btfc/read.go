// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
)

// reader makes a state of a kernel's streams and its parent's state.
type reader struct {
	s      [numStreams]btfa.Cursor
	parent *state
	state  *state
}

// head is what a kernel begins with.
type head struct {
	names, textBytes, contents, words, nameRanks, entRanks, types, strings, rest int
}

// smallPayload is up to how many bytes a kernel is read by one goroutine.
const smallPayload = 64 << 10

// decode returns the state of a kernel. size is the size of its BTF in bytes, which bounds what it may have. The state notes what q selects if q is not nil.
//
// The names, the order of types, the contents and their references of a large kernel are decoded by a goroutine each. Another one decodes the order of
// strings, which the state may still wait for. It does not refer to payload.
func decode(ctx context.Context, parent *state, payload []byte, size int64, q *Query) (*state, error) {
	r := &reader{parent: parent}
	h, err := r.head(payload, size)
	if err != nil {
		return nil, err
	}
	r.extend(h)
	beside := begin[struct{}]
	if len(payload) <= smallPayload {
		beside = do[struct{}]
	}
	var strings [numStreams]btfa.Cursor
	for _, i := range stringStreams {
		strings[i] = btfa.NewCursor(bytes.Clone(r.s[i].Rest()))
	}
	refs := newRefReader(r, h)
	names := beside(ctx, func() (struct{}, error) { return struct{}{}, r.names(h) })
	types := beside(ctx, func() (struct{}, error) { return struct{}{}, r.types(h, refs) })
	contents := beside(ctx, func() (struct{}, error) {
		defer close(refs.ready)
		err := newContentReader(r, h).read(refs)
		_, unnamed := names.get()
		_, disordered := types.get()
		return struct{}{}, cmp.Or(r.fail(), err, unnamed, disordered)
	})
	listed := begin[[]uint32]
	if q != nil { // the strings of most kernels are not needed
		listed = onDemand[[]uint32]
	}
	st, from, known := r.state, parent.list, parent.numNames
	st.list = listed(ctx, func() ([]uint32, error) { return readStrings(from, known, st, contents, &strings, h.strings) })
	referred := beside(ctx, func() (struct{}, error) {
		err := refs.read(types)
		names.get() // contents may have ended without waiting for these
		types.get()
		return struct{}{}, cmp.Or(err, end(&r.s))
	})
	_, err = contents.get()
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

// fail returns the first error of any stream but those of references.
func (r *reader) fail() error {
	for i := range r.s[:streamRefFar] {
		if r.s[i].Err != nil {
			return fmt.Errorf("%s: %w", streamTexts[i], r.s[i].Err)
		}
	}
	return nil
}

// head reads how much there is of everything, for which room is made. So all has to be there in some way: a word of a
// content takes half a byte at least, a byte of a name a 256th, a type a content, here or in an ancestor.
func (r *reader) head(payload []byte, size int64) (h head, err error) {
	if r.s, err = split(payload); err != nil {
		return h, err
	}
	c := &r.s[streamHead]
	n := len(payload)
	most := int(size / 4)
	h.names = c.Count(n, "names")
	h.textBytes = c.Count(int(min(size, int64(n)<<8)), "bytes of names")
	h.contents = c.Count(n, "contents")
	h.words = c.Count(min(most, 2*n), "words")
	h.nameRanks = c.Count(n, "names listed by number")
	h.entRanks = c.Count(n, "types listed by number")
	h.types = c.Count(min(most/3, r.parent.numContents+h.contents), "types")
	h.strings = c.Count(int(size), "strings")
	h.rest = r.s[streamRest].Len()
	if c.Err != nil {
		return h, fmt.Errorf("head: %w", c.Err)
	}
	p := r.parent
	if p.textBytes+h.textBytes+4*(p.numWords+h.words+p.numNames+h.names+p.numContents+h.contents) > limits.CorpusChain {
		return h, &limits.Exceeded{Max: limits.CorpusChain, What: "bytes that it is encoded against"}
	}
	return h, nil
}

// extend makes room for what is new.
func (r *reader) extend(h head) {
	p := r.parent
	r.state = &state{
		names: goOn(p.names, p.numNames, h.names), numNames: p.numNames + h.names, textBytes: p.textBytes + h.textBytes,
		contents: goOn(p.contents, p.numContents, h.contents), numContents: p.numContents + h.contents, numWords: p.numWords + h.words,
		numEnts: p.numEnts, rest: bytes.Clone(r.s[streamRest].Rest()),
	}
}

// names reads the new names.
func (r *reader) names(h head) error {
	text, shared := r.s[streamText].Rest(), r.s[streamShared].Rest()
	known := r.parent.numNames
	if len(shared) != h.names || h.names == 0 && h.textBytes+len(text) > 0 {
		return errWrong
	}
	if h.names == 0 {
		return nil
	}
	// Pages share one piece of memory, which begins with what the first has already.
	page := r.state.names[known>>pageBits]
	begin := 0 // of the page
	out := make([]byte, len(page.text)+h.textBytes)
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

// types reads the order of types, and tells refs the IDs of those with new contents.
func (r *reader) types(h head, refs *refReader) error {
	p, st, n := r.parent, r.state, h.types
	from := p.types
	o := &orderReader{runs: &r.s[streamTypeRuns], starts: &r.s[streamTypeStarts], far: &r.s[streamTypeFar], place: newPlace(len(p.types))}
	if o.same(n) {
		st.types = from
	} else {
		st.types = make([]uint32, 0, n)
	}
	known := p.numContents
	next := uint32(known)
	limit := uint32(st.numContents)
	refs.ids = make([]uint32, 0, st.numContents-known)
	fresh := func(entity uint32) bool {
		if next == limit {
			o.runs.Fail(errWrong)
			return false
		}
		st.contents[next>>pageBits].entity[next%pageLen] = entity
		st.types = append(st.types, next)
		refs.ids = append(refs.ids, uint32(len(st.types)))
		next++
		return true
	}
	for len(st.types) < n && o.err() == nil {
		kind, run := o.run(n - len(st.types))
		switch kind {
		case runCopy:
			o.start()
			st.types = o.takeRun(st.types, from, run)
		case runChanged:
			o.start()
			for ; run > 0; run-- {
				i, ok := o.take()
				if !ok || !fresh(p.entity(from[i])) {
					break
				}
			}
		case runNew:
			for ; run > 0; run-- {
				st.numEnts++
				if !fresh(st.numEnts) {
					break
				}
			}
		case runOld:
			first := o.oldRun(run, known)
			for i := range uint32(run) {
				if o.far.Err == nil {
					st.types = append(st.types, first+i)
				}
			}
		}
	}
	if next != limit {
		return cmp.Or(o.err(), errWrong)
	}
	return o.err()
}

// readStrings reads the order of n strings from its streams. The types of st are there once contents are.
// parent is the parent's list, or nil, and names is how many names the parent has.
func readStrings(parent *later[[]uint32], names int, st *state, contents *later[struct{}], s *[numStreams]btfa.Cursor, n int) (_ []uint32, err error) {
	var from []uint32
	if parent != nil {
		if from, err = parent.get(); err != nil {
			return nil, err
		}
	}
	o := &orderReader{runs: &s[streamStringRuns], starts: &s[streamStringStarts], far: &s[streamStringFar], place: newPlace(len(from))}
	if o.same(n) {
		return from, end(s)
	}
	known := uint32(names)
	next := known
	limit := uint32(st.numNames)
	out := make([]uint32, 0, min(n, int(limit)))
	var uses *uses
	for len(out) < n && o.runs.Err == nil {
		if len(out) >= cap(out) {
			return nil, errWrong // a name twice
		}
		kind, run := o.run(min(n, cap(out)) - len(out))
		first := len(out)
		switch kind {
		case runCopy:
			o.start()
			out = o.takeRun(out, from, run)
		case runDerived:
			if uses == nil {
				if _, err := contents.get(); err != nil {
					return nil, err
				}
				uses = newUses(st)
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
			for ; run > 0; run-- {
				out = append(out, next)
				next++
			}
		case runOld:
			old := o.oldRun(run, int(limit))
			for i := range uint32(run) {
				out = append(out, old+i)
			}
		}
		if uses != nil {
			uses.pass(out[first:])
		}
	}
	return out, end(s)
}

// uses walks the names of a state's types in the order in which they are used first.
type uses struct {
	st    *state
	taken []bool
	typ   int      // of the state's types: the first behind the names
	names []uint32 // of types before that, those that have not been passed yet
	room  []uint32
}

// usesAhead is of how many types the names are listed at once, since their contents are in many places of memory, which a processor fetches side by
// side if nothing but that is done.
const usesAhead = 64

func newUses(st *state) *uses {
	return &uses{st: st, taken: make([]bool, st.numNames)}
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
		if !u.taken[name] {
			u.taken[name] = true
			out = append(out, name)
		}
	}
	return out
}

// more lists names of the next types, and reports whether there are any.
func (u *uses) more() bool {
	types := u.st.types[u.typ:min(u.typ+usesAhead, len(u.st.types))]
	u.typ += len(types)
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

// appendNames appends the names in a content, in their order.
func appendNames(names, w []uint32) []uint32 {
	names = append(names, w[0])
	if l := layoutOf(w); l.names > 0 {
		for i := int(l.first); i < len(w); i += int(l.names) {
			names = append(names, w[i])
		}
	}
	return names
}
