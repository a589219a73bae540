// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"cmp"
	"encoding/binary"
	"errors"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btfa"
)

// errModel says that BTF is not of a form that can be encoded against its parts.
var errModel = errors.New("not of the usual form")

// writer makes streams of a kernel and its parent's state, which reader reads.
type writer struct {
	s         streams
	parent    *state
	parsed    *parsed
	nameGuess nameGuesses
	refGuess  refGuesses
	nextNew   uint32
	last      uint32

	entity    []uint32 // by type ID
	nameRanks listed
	entRanks  listed
}

// listed is what was listed by number: the rank, from 1, by the number.
type listed struct {
	rank []uint32
	n    uint32
}

// encode returns the streams of a kernel. It fails with errModel where there are none; that those that there are give
// the same bytes is to be checked.
func encode(parent *state, k *known, blob []byte) (*streams, error) {
	strings, err := parent.strings()
	if err != nil {
		return nil, err
	}
	p, err := parse(k, blob)
	if err != nil {
		return nil, err
	}
	return write(parent, p, match(parent, k, p, 0), strings), nil
}

// write returns the streams of BTF of which m says what the parent has. strings are those of the parent.
func write(parent *state, p *parsed, m *matching, strings []uint32) *streams {
	w := &writer{parent: parent, parsed: p, nextNew: uint32(parent.numNames)}
	w.entity = m.entity
	w.nameRanks = listed{rank: make([]uint32, parent.numNames+len(p.fresh))}
	w.entRanks = listed{rank: make([]uint32, m.numEnts+1)}
	w.order(m)
	words, contents := 0, 0
	for id, fresh := range m.fresh {
		if fresh {
			words += len(p.types[id])
			contents++
			w.content(p.types[id], uint32(id))
		}
	}
	w.strings(strings)
	w.s[streamRest] = p.rest
	text := w.names()
	for _, n := range []int{len(p.fresh), text, contents, words, int(w.nameRanks.n), int(w.entRanks.n), len(p.types) - 1, len(p.strings)} {
		w.uvarint(streamHead, uint64(n))
	}
	return &w.s
}

// again returns the streams of a kernel that is the same as the one of a state.
func (st *state) again() (*streams, error) {
	strings, err := st.strings()
	if err != nil {
		return nil, err
	}
	w := &writer{}
	for _, n := range []int{0, 0, 0, 0, 0, 0, len(st.types), len(strings)} {
		w.uvarint(streamHead, uint64(n))
	}
	w.s[streamRest] = st.rest
	for _, l := range []struct{ n, runs, starts int }{
		{len(st.types), streamTypeRuns, streamTypeStarts}, {len(strings), streamStringRuns, streamStringStarts},
	} {
		if l.n > 0 {
			w.byte(l.starts, startNext)
			w.uvarint(l.runs, uint64(l.n-1)<<2|runCopy)
		}
	}
	return &w.s, nil
}

// names writes the new names. It returns how many bytes they have.
func (w *writer) names() (size int) {
	var last []byte
	for _, t := range w.parsed.fresh {
		n := 0
		for n < min(len(t), len(last), 255) && t[n] == last[n] {
			n++
		}
		w.byte(streamShared, byte(n))
		w.s[streamText] = append(append(w.s[streamText], t[n:]...), 0)
		last = t
		size += len(t) + 1
	}
	return size
}

func (w *writer) byte(stream int, v byte) { w.s[stream] = append(w.s[stream], v) }

// far writes a number that is likely to be large, into a stream and the two behind it.
func (w *writer) far(stream int, v uint64) {
	w.byte(stream, byte(v))
	w.byte(stream+1, byte(v>>8))
	w.uvarint(stream+2, v>>16)
}

func (w *writer) uvarint(stream int, v uint64) { w.s[stream] = binary.AppendUvarint(w.s[stream], v) }

// order writes the order of types.
func (w *writer) order(m *matching) {
	o := &orderWriter{place: newPlace(len(w.parent.types))}
	o.write(m.items)
	w.s[streamTypeRuns], w.s[streamTypeStarts], w.s[streamTypeFar] = o.runs, o.starts, o.far
}

// strings writes the order of strings: as that of the parent, or as the types use them.
func (w *writer) strings(parents []uint32) {
	p := w.parsed
	at := make([]uint32, w.parent.numNames)
	for i, n := range parents {
		at[n] = uint32(i) + 1
	}
	items := make([]item, len(p.strings))
	for i, n := range p.strings {
		switch {
		case n >= uint32(len(at)):
			items[i] = item{kind: runNew}
		case at[n] > 0:
			items[i] = item{runCopy, at[n] - 1}
		default:
			items[i] = item{runOld, n}
		}
	}
	alike := &orderWriter{strings: true, place: newPlace(len(parents))}
	alike.write(items)
	best := alike
	if derived := w.derived(items, len(parents)); derived.cost() < alike.cost()-alike.cost()/8 {
		best = derived
	}
	w.s[streamStringRuns], w.s[streamStringStarts], w.s[streamStringFar] = best.runs, best.starts, best.far
}

// cost is about what an order takes in bytes.
func (o *orderWriter) cost() int { return len(o.runs) + len(o.starts) + len(o.far) }

// derived is the order of strings where those that come as the types use them are not told.
func (w *writer) derived(items []item, parents int) *orderWriter {
	p := w.parsed
	seen := make([]bool, w.parent.numNames+len(p.fresh))
	var uses []uint32
	var names []uint32
	for _, t := range p.types[1:] {
		names = appendNames(names[:0], t)
		for _, n := range names {
			if !seen[n] {
				seen[n] = true
				uses = append(uses, n)
			}
		}
	}
	clear(seen)
	out := make([]item, len(items))
	fresh := uint32(w.parent.numNames)
	for i, n := range p.strings {
		for len(uses) > 0 && seen[uses[0]] {
			uses = uses[1:]
		}
		out[i] = items[i]
		switch {
		case len(uses) > 0 && uses[0] == n && i > 0:
			out[i] = item{kind: runDerived}
		case items[i].kind == runNew && n != fresh:
			out[i] = item{runOld, n}
		}
		if out[i].kind == runNew {
			fresh = n + 1
		}
		seen[n] = true
	}
	o := &orderWriter{strings: true, place: newPlace(parents)}
	o.write(out)
	return o
}

// content writes the words of one content, whose names are numbers and whose references are IDs.
func (w *writer) content(t []uint32, id uint32) {
	k := btf.Kind(t[1] >> 24 & 0x7f)
	shape := k.Shape()
	w.byte(streamKinds, byte(t[1]>>24))
	if hasCount(k) {
		w.uvarint(streamCounts, uint64(t[1]&0xffffff))
	}
	if !nameless(k) {
		w.name(classType, uint32(k), w.last, t[0])
	}
	if t[0] != 0 {
		w.last = t[0]
	}
	switch shape.Third {
	case btf.Ref:
		c := classType
		if k == btf.KindFunc {
			c = classFunc
		}
		w.ref(c, id, uint32(k), w.last, t[2])
	case btf.Size:
		if k.IsComposite() {
			w.uvarint(streamSizes, uint64(t[2]))
		} else {
			w.uvarint(streamNumbers, uint64(t[2]))
		}
	}
	x := t[3:]
	for i, word := range shape.Extra {
		if word == btf.Ref {
			w.ref(classOther, id, uint32(k), uint32(i), x[i])
		} else {
			w.uvarint(streamNumbers, uint64(x[i]))
		}
	}
	x = x[len(shape.Extra):]
	cl := elemClass(k)
	prev, before := t[0], uint32(k)
	number := uint32(0)
	lastRef := uint32(0)
	if k == btf.KindFuncProto {
		lastRef = w.entity[t[2]]
	}
	for n := len(shape.Elem); len(x) > 0; x = x[n:] {
		if k == btf.KindDatasec {
			w.ref(cl, id, uint32(k), 0, x[0])
			w.uvarint(streamValues, btfa.Zigzag(int64(int32(x[1]-number))))
			w.uvarint(streamNumbers, uint64(x[2]))
			number = x[1] + x[2]
			continue
		}
		w.name(cl, prev, before, x[0])
		switch cl {
		case classMember:
			lastRef = w.ref(cl, id, cmp.Or(x[0], lastRef), prev, x[1])
			w.uvarint(streamOffsets, btfa.PackOffset(int64(int32(x[2]-number))))
			number = x[2]
		case classParam:
			lastRef = w.ref(cl, id, cmp.Or(x[0], lastRef), prev, x[1])
		case classEnum:
			w.uvarint(streamValues, btfa.Zigzag(int64(int32(x[1]-number))))
			number = x[1]
			if n == 3 {
				w.uvarint(streamNumbers, uint64(x[2]))
			}
		}
		prev, before = x[0], prev
	}
}

// name writes a name that comes after two others.
func (w *writer) name(cl class, prev, before, name uint32) {
	far, near := &w.nameGuess.far[slot(prev, before)], &w.nameGuess.near[slot(prev, uint32(cl))]
	s := streamNames + int(cl)
	switch {
	case name == w.nextNew && !w.used(name):
		w.byte(s, nameNext)
		w.nextNew++
	case name == 0:
		w.byte(s, nameEmpty)
	case *far == name:
		w.byte(s, nameFar)
	case *near == name:
		w.byte(s, nameNear)
	case !w.used(name):
		w.byte(s, nameJump)
		w.far(streamNameFar, btfa.Zigzag(int64(name)-int64(w.nextNew)))
		w.nextNew = name + 1
	case w.nameRanks.rank[name] == 0:
		w.byte(s, nameListed)
		w.far(streamNameFar, uint64(name))
		w.list(&w.nameRanks, name)
	default:
		w.ranked(&w.nameRanks, name, s, streamNameLow+int(cl), &nameCodes)
	}
	w.use(name)
	*far, *near = name, name
}

// used says whether a name is one that an ancestor has, or that was written.
func (w *writer) used(name uint32) bool {
	n := uint32(w.parent.numNames)
	return name < n || w.parsed.used[name-n]
}

func (w *writer) use(name uint32) {
	if n := uint32(w.parent.numNames); name >= n {
		w.parsed.used[name-n] = true
	}
}

func (w *writer) list(t *listed, v uint32) {
	t.n++
	t.rank[v] = t.n
}

// ranked writes the rank of what was listed by number before.
func (w *writer) ranked(t *listed, v uint32, stream, low int, c *rankCodes) {
	rank := int(t.rank[v]) - 1
	back := int(t.n) - 1 - rank
	first, last := c.last-c.first, c.firstHigh-c.last
	switch {
	case rank < first:
		w.byte(stream, byte(c.first+rank))
	case back < last:
		w.byte(stream, byte(c.last+back))
	case rank < first+(c.lastHigh-c.firstHigh)<<8 && (rank <= back || back >= last+(rankNumber-c.lastHigh)<<8):
		w.byte(stream, byte(c.firstHigh+(rank-first)>>8))
		w.byte(low, byte(rank-first))
	case back < last+(rankNumber-c.lastHigh)<<8:
		w.byte(stream, byte(c.lastHigh+(back-last)>>8))
		w.byte(low, byte(back-last))
	default:
		w.byte(stream, rankNumber)
		w.far(c.far, uint64(rank))
	}
}

// ref writes a reference of the type with an ID to another.
func (w *writer) ref(cl class, id, name, before, to uint32) uint32 {
	context := slot(name, before)
	last, near := &w.refGuess.far[context], &w.refGuess.near[slot(name, uint32(cl))]
	far, distance := &last.entity, &last.distance
	e := w.entity[to]
	d := int64(to) - int64(id)
	s := streamRefs + int(cl)
	switch rank := w.entRanks.rank[e]; {
	case *far == e:
		w.byte(s, refFar)
	case *near == e:
		w.byte(s, refNear)
	case -refReach <= d && d <= refReach:
		w.byte(s, byte(refHere+d))
		*distance = uint32(d)
	case int64(int32(*distance)) == d:
		w.byte(s, refSame)
	case rank == 0:
		w.byte(s, refListed)
		w.far(streamRefFar, btfa.Zigzag(d))
		w.list(&w.entRanks, e)
		*distance = uint32(d)
	default:
		w.ranked(&w.entRanks, e, s, streamRefLow+int(cl), &refCodes)
	}
	*far, *near = e, e
	return e
}
