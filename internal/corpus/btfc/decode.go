// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
)

// decode returns the state of a payload, which it does not retain. size is the size of its units in bytes and bounds the state. If q is not
// nil, the state notes what q selects.
//
// The order of strings is decoded when it is needed, because most kernels are only parents of others.
func decode(parent *state, payload []byte, size int64, q *Query) (*state, error) {
	c := codecs.Get().(*codec)
	defer func() {
		*c = codec{fresh: c.fresh[:0], listed: c.listed[:0]}
		codecs.Put(c)
	}()
	c.parent = parent
	if err := c.split(payload); err != nil {
		return nil, err
	}
	words, err := c.words(len(payload))
	if err != nil {
		return nil, err
	}
	var strings [orderStreams]btfa.Cursor
	for i := range strings {
		strings[i] = btfa.NewCursor(bytes.Clone(c.in[streamStrings+i].Rest()))
	}
	err = c.begin(c.in[streamKinds].Len(), words, size)
	if err == nil {
		err = c.contents(nil)
	}
	if err = cmp.Or(err, end(c.in[:], 0)); err == nil && q != nil {
		err = c.ask(q)
	}
	if err != nil {
		return nil, err
	}
	st := c.st
	st.strings = sync.OnceValues(func() ([]uint32, error) { return readStrings(parent, st, strings) })
	return st, nil
}

// codecs keeps idle decoders, which are large.
var codecs = sync.Pool{New: func() any { return new(codec) }}

// begin makes the state with all but the new contents, for which it makes room.
func (c *codec) begin(contents, words int, size int64) error {
	p := c.parent
	text, shared := c.in[streamText].Rest(), c.in[streamShared].Rest()
	textBytes := len(text)
	for _, n := range shared {
		textBytes += int(n)
	}
	if p.memory()+textBytes+4*(words+len(shared)+contents) > limits.CorpusChain {
		return &limits.Exceeded{Max: limits.CorpusChain, What: "bytes that it is encoded against"}
	}
	c.st = &state{
		names: p.names.extend(len(shared), textBytes), contents: p.contents.extend(contents, words), numEnts: p.numEnts,
	}
	c.nextNew = uint32(p.names.n)
	err := c.readNames(text, shared)
	if err == nil {
		err = c.readUnits(contents, size)
	}
	if err == nil {
		err = c.readTypes(contents)
	}
	return err
}

// readNames reads the new names.
func (c *codec) readNames(text, shared []byte) error {
	var last []byte
	for _, n := range shared {
		own := bytes.IndexByte(text, 0) + 1
		if own == 0 || int(n) > max(len(last)-1, 0) {
			return errWrong
		}
		name := c.st.names.push(int(n) + own)
		copy(name, last[:n])
		copy(name[n:], text)
		last, text = name, text[own:]
	}
	if len(text) > 0 {
		return errWrong
	}
	return nil
}

// readUnits reads the units of size bytes. Memory is allocated for their types and strings, of which each takes some of these bytes.
func (c *codec) readUnits(contents int, size int64) error {
	in := &c.in[streamUnits]
	types := c.parent.contents.n + contents
	for in.Len() > 0 {
		u := unit{name: string(in.Text())}
		u.size = int64(in.Count(int(size), "bytes"))
		u.types = in.Count(min(types, int(u.size/4)), "types")
		u.strings = in.Count(int(u.size), "strings")
		u.rest = bytes.Clone(in.Bytes(in.Count(in.Len(), "bytes")))
		size, types = size-u.size, types-u.types
		c.st.units = append(c.st.units, u)
	}
	if in.Err == nil && size != 0 {
		in.Fail(fmt.Errorf("%d bytes are missing", size))
	}
	return in.Err
}

// readTypes reads the order of types.
func (c *codec) readTypes(contents int) error {
	p, st, n := c.parent, c.st, 0
	for _, u := range st.units {
		n += u.types
	}
	o := newOrderReader(c.in[streamTypes:streamStrings], len(p.types), 0)
	st.types = make([]uint32, 0, n)
	next, limit := uint32(p.contents.n), uint32(p.contents.n+contents)
	c.fresh = slices.Grow(c.fresh, contents)
	add := func(entity, old uint32) {
		if next == limit {
			o.s[orderRuns].Fail(errWrong)
			return
		}
		st.contents.all[next>>pageBits].notes[next%pageLen] = entity
		st.types = append(st.types, next)
		c.fresh = append(c.fresh, fresh{uint32(len(st.types)), old})
		next++
	}
	for len(st.types) < n && o.err() == nil {
		switch kind, first, end := o.run(n - len(st.types)); kind {
		case runCopy:
			st.types = append(st.types, p.types[first:end]...)
		case runChanged:
			for _, old := range p.types[first:end] {
				add(p.entity(old), old)
			}
		case runNext:
			for range min(end, contents) {
				st.numEnts++
				add(st.numEnts, noContent)
			}
		}
	}
	if o.err() == nil && next != limit {
		return errWrong
	}
	return o.err()
}

// readStrings reads the order of the strings of a state from its streams.
func readStrings(parent, st *state, s [orderStreams]btfa.Cursor) ([]uint32, error) {
	from, err := parent.strings()
	if err != nil {
		return nil, err
	}
	o := newOrderReader(s[:], len(from), st.names.n)
	uses := newUses(st)
	var out []uint32
	for _, u := range st.units {
		out = slices.Grow(out, min(u.strings, st.names.n))
		uses.unit(u)
		for n := len(out) + u.strings; len(out) < n && o.err() == nil; {
			had := len(out)
			switch kind, first, end := o.run(n - len(out)); kind {
			case runCopy:
				out = append(out, from[first:end]...)
			case runNext:
				if out = uses.take(out, end); len(out) < had+end {
					return nil, errWrong
				}
			case runOld:
				for ; first < end; first++ {
					out = append(out, uint32(first))
				}
			}
			uses.pass(out[had:])
		}
	}
	return out, end(s[:], streamStrings)
}

// uses yields the names of a unit's types in the order in which the types use them first.
type uses struct {
	st    *state
	after []uint32 // types of later units
	types []uint32 // of the unit, those behind names
	names []uint32 // of the types before, those that are left
	taken []bool   // by name
	room  []uint32

	first  bool   // the unit is the first one
	kernel []bool // what it has taken
}

// usesAhead is the number of types whose names are listed at once. Their contents are scattered in memory, and a processor fetches
// them side by side if it has nothing else to do.
const usesAhead = 64

func newUses(st *state) *uses {
	return &uses{st: st, after: st.types, taken: make([]bool, st.names.n)}
}

// unit moves on to the next unit. A module does not have the names of its kernel.
func (u *uses) unit(next unit) {
	if u.first {
		u.kernel = slices.Clone(u.taken)
	}
	copy(u.taken, u.kernel)
	u.types, u.after, u.names, u.first = u.after[:next.types], u.after[next.types:], nil, u.kernel == nil
}

// pass takes names out of the order.
func (u *uses) pass(names []uint32) {
	for _, n := range names {
		u.taken[n] = true
	}
}

// next returns the next name that has not been taken, if there is one.
func (u *uses) next() (name uint32, ok bool) {
	for {
		for i, n := range u.names {
			if !u.taken[n] {
				u.names = u.names[i:]
				return n, true
			}
		}
		if !u.more() {
			return 0, false
		}
	}
}

// take appends the next n names to out, and takes them. There may be fewer.
func (u *uses) take(out []uint32, n int) []uint32 {
	for range n {
		name, ok := u.next()
		if !ok {
			break
		}
		u.taken[name] = true
		out = append(out, name)
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
