// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/limits"
)

// decode returns the state of a chunk. It does not retain the payloads. size is the size of its units in bytes and bounds the state. If q is
// not nil, only the front is decoded, the state and its parent are for q, and the state notes what q selects.
func decode(parent *state, front, back []byte, size int64, q *Query) (*state, error) {
	d := decoders.Get().(*decoder)
	defer d.release()
	d.parent, d.query = parent, q
	p := btfa.NewCursor(front)
	// Each name is a string of a unit, and each entity a type.
	late := late{names: p.Count(int(size), "names"), entities: p.Count(int(size/12), "entities")}
	err := split(&p, &d.in)
	if err == nil && len(back) > 0 {
		p = btfa.NewCursor(back)
		err = split(&p, &d.back)
	}
	if err != nil {
		return nil, err
	}
	words, err := d.readSizes(len(front) + len(back))
	if err != nil {
		return nil, err
	}
	var strings [orderStreams]btfa.Cursor
	copy(strings[:], d.back[streamStrings:])
	for i := range strings {
		d.back[streamStrings+i] = btfa.Cursor{}
	}
	late.contents = len(d.seconds[1])
	err = d.begin(len(d.seconds[0]), late, words, len(front)+len(back), size)
	if err == nil {
		err = d.contents()
	}
	if err = cmp.Or(err, end(d.in[:], 0), end(d.back[:], 0)); err != nil {
		return nil, err
	}
	st := d.st
	if q == nil {
		if st.strings, err = readStrings(parent, st, strings); err != nil {
			return nil, fmt.Errorf("strings: %w", err)
		}
	}
	st.lists = st.listsSize()
	return st, nil
}

// checkLate returns an error if a front says that there are more names or entities at the back than there is room for in so many bytes.
// Each name takes a byte at least, and so does each entity.
func checkLate(front []byte, back int64) error {
	p := btfa.NewCursor(front)
	names, entities := p.Uvarint(), p.Uvarint()
	if max(names, entities) > uint64(back) {
		return fmt.Errorf("%d names and %d entities at the back, where there are %d bytes", names, entities, back)
	}
	return p.Err
}

// claim returns how many bytes a chunk may add to the shared memory of a state. begin checks it. For a kernel that is being written it
// is a guess.
func (e *Entry) claim(p part, q *Query) int64 {
	if e.made != nil {
		select {
		case <-e.made:
		default:
			return limits.CorpusSmall
		}
	}
	c := &e.Chunks[p]
	if q == nil {
		return limits.CorpusState*(c.Size+c.Back.Size) + limits.CorpusSmall
	}
	return limits.CorpusState*c.Size + lateName*c.Back.Size + limits.CorpusSmall
}

// lateName is the number of bytes that a name at the back takes in a state for a query, which has it as an empty one.
const lateName = 5

// listsLimit returns how many bytes the lists of a state may have if its units have so many bytes. Of 46 kernels they have at most half of
// it. readUnits checks it.
func listsLimit(size int64, q *Query) int64 {
	if q != nil {
		size /= 4
	}
	return size + 1<<20
}

// listsSize returns the bytes of the lists of a state.
func (s *state) listsSize() int64 {
	return 8*int64(s.front.len()) + 9*int64(s.all.len()) + 4*int64(len(s.strings))
}

// decoders keeps idle decoders, which are large.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

// release makes d idle.
func (d *decoder) release() {
	clear(d.names[:])
	clear(d.refs[:])
	d.parent, d.st, d.query, d.in, d.back, d.err = nil, nil, nil, [numStreams]btfa.Cursor{}, [numStreams]btfa.Cursor{}, nil
	d.fresh, d.late, d.listed = d.fresh[:0], d.late[:0], d.listed[:0]
	d.seconds[0], d.seconds[1] = d.seconds[0][:0], d.seconds[1][:0]
	d.list, d.at, d.lastType, d.lastName, d.nextNew = nil, 0, 0, 0, 0
	decoders.Put(d)
}

// split sets the streams that a payload consists of from p on.
func split(p *btfa.Cursor, in *[numStreams]btfa.Cursor) error {
	var lens [numStreams]uint64
	for i := range lens {
		lens[i] = p.Uvarint()
	}
	for i, n := range lens {
		if n > uint64(p.Len()) {
			return cmp.Or(p.Err, errStreams)
		}
		in[i] = btfa.NewCursor(p.Bytes(int(n)))
	}
	if p.Len() > 0 {
		return errStreams
	}
	return p.Err
}

// readSizes reads the second words of the new contents, and returns how many words these have. A word takes half a byte or more.
func (d *decoder) readSizes(payload int) (n int, err error) {
	for i, in := range []*[numStreams]btfa.Cursor{&d.in, &d.back} {
		counts := &in[streamCounts]
		kinds := in[streamKinds].Rest()
		d.seconds[i] = slices.Grow(d.seconds[i], len(kinds))
		for _, kind := range kinds {
			count := uint64(0)
			if k := kind & 0x7f; int(k) < btf.NumKinds && layouts[k].counted {
				count = counts.Uvarint()
			}
			second := uint32(kind)<<24 | uint32(count)
			size := recordLen(second)
			if n += int(size); size == 0 || count > 1<<24-1 || n > 2*payload {
				return 0, cmp.Or(counts.Err, errWrong)
			}
			d.seconds[i] = append(d.seconds[i], second)
		}
	}
	return n, nil
}

// late is how much of what is new is at the back. The contents are missing if only the front is decoded.
type late struct{ names, entities, contents int }

// begin makes the state with all but the new contents, for which it makes room. It is given how many are at the front, how many words they
// all have, and the bytes of the payloads.
func (d *decoder) begin(contents int, late late, words, payload int, size int64) error {
	p := d.parent
	text := [2][]byte{d.in[streamText].Rest(), d.back[streamText].Rest()}
	prefixes := [2][]byte{d.in[streamShared].Rest(), d.back[streamShared].Rest()}
	if d.query == nil && len(prefixes[1]) != late.names {
		return errWrong
	}
	textBytes := len(text[0]) + len(text[1])
	for _, s := range prefixes {
		for _, n := range s {
			textBytes += int(n)
		}
	}
	names := len(prefixes[0]) + late.names
	all := contents + late.contents
	own := &shared{p.shared, p.names.growth(names, textBytes, 1) + p.contents.growth(all, words, 4)}
	claimed := limits.CorpusState*int64(payload) + limits.CorpusSmall
	if d.query != nil {
		claimed += lateName * int64(late.names)
	}
	if own.bytes > claimed {
		return &limits.Exceeded{Max: limits.CorpusState, What: "bytes in memory per unpacked byte"}
	}
	if p.memory()+textBytes+4*(words+names+all+contents+late.entities) > limits.CorpusChain {
		return &limits.Exceeded{Max: limits.CorpusChain, What: "bytes that it is encoded against"}
	}
	d.st = &state{
		shared: own,
		names:  p.names.extend(names, textBytes), contents: p.contents.extend(all, words),
		numEnts: p.numEnts, backNames: slices.Clip(p.backNames),
	}
	d.nextNew = uint32(p.names.count)
	err := d.readNames(text[0], prefixes[0])
	if err == nil && d.query != nil {
		d.st.found = slices.Clip(p.found)
		err = d.query.note(p, d.st)
	}
	if err == nil && late.names > 0 {
		err = d.readBackNames(text[1], prefixes[1], late.names)
	}
	if err == nil {
		err = d.readUnits(size)
	}
	if err == nil {
		err = d.readFront(contents)
	}
	entities := d.st.numEnts + uint32(late.entities)
	if err == nil && d.query == nil {
		err = d.readAll(late.contents)
		if err == nil && d.st.numEnts != entities {
			err = errWrong
		}
	}
	d.st.numEnts = entities
	return err
}

// readBackNames reads the n new names at the back, or makes them empty if only the front is decoded.
func (d *decoder) readBackNames(text, shared []byte, n int) error {
	first := uint32(d.st.names.count)
	d.st.backNames = append(d.st.backNames, span{first, first + uint32(n)})
	if d.query == nil {
		return d.readNames(text, shared)
	}
	d.st.names.skip(n)
	return nil
}

// readNames reads new names.
func (d *decoder) readNames(text, shared []byte) error {
	var last []byte
	for _, n := range shared {
		own := bytes.IndexByte(text, 0) + 1
		if own == 0 || int(n) > max(len(last)-1, 0) {
			return errWrong
		}
		name := d.st.names.push(int(n) + own)
		copy(name, last[:n])
		copy(name[n:], text)
		last, text = name, text[own:]
	}
	if len(text) > 0 {
		return errWrong
	}
	return nil
}

// readUnits reads the units of size bytes. Each of their types and strings takes some of these bytes, so these bound the memory for them.
func (d *decoder) readUnits(size int64) error {
	in := &d.in[streamUnits]
	room := listsLimit(size, d.query)
	for in.Len() > 0 {
		u := unit{name: string(in.Text())}
		u.size = int64(in.Count(int(size), "bytes"))
		u.types = in.Count(int(u.size/12), "types")
		u.front = in.Count(u.types, "types at the front")
		u.strings = in.Count(int(u.size), "strings")
		u.rest = bytes.Clone(in.Bytes(in.Count(in.Len(), "bytes")))
		size -= u.size
		room -= 8 * int64(u.front)
		if d.query == nil {
			room -= 9*int64(u.types) + 4*int64(u.strings)
		}
		if room < 0 {
			return errors.New("more types and strings than usual for so many bytes")
		}
		d.st.units = append(d.st.units, u)
	}
	if in.Err == nil && size != 0 {
		in.Fail(fmt.Errorf("%d bytes are missing", size))
	}
	return in.Err
}

// readStrings reads the order of the strings of a state from its streams.
func readStrings(parent, st *state, s [orderStreams]btfa.Cursor) ([]uint32, error) {
	from := parent.strings
	o := newOrderReader(s[:], len(from), st.names.count)
	if total := st.numStrings(); o.whole && total > 0 {
		if total != len(from) {
			return nil, errWrong
		}
		return from, end(s[:], streamStrings)
	}
	uses := newUses(st)
	var out []uint32
	for _, u := range st.units {
		out = slices.Grow(out, min(u.strings, st.names.count))
		uses.unit(u)
		for n := len(out) + u.strings; len(out) < n && !o.failed; {
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
			default:
				return nil, errRun
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
	types []uint32 // types of the unit that more has not listed yet
	names []uint32 // listed names that next has not passed
	taken []bool   // names that next no longer returns
	room  []uint32

	first  bool   // the unit is the first one
	kernel []bool // copy of taken after the first unit, the kernel; nil before
}

// usesAhead is the number of types whose names are listed at once. Their contents are scattered in memory, and a processor fetches
// them side by side if it has nothing else to do.
const usesAhead = 64

func newUses(st *state) *uses {
	return &uses{st: st, after: st.all.contents, taken: make([]bool, st.names.count)}
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
