// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btfa"
)

// Module is a module's BTF.
type Module struct {
	Name string
	BTF  []byte
}

// parsed is a chunk to be encoded. Its memory is used for several, one after the other.
type parsed struct {
	known   *known
	units   []unit
	words   []uint32  // records by type ID, one behind the other. Names have numbers
	starts  []uint32  // where each begins, and the last one ends
	strings []uint32  // names
	fresh   [][]byte  // the text of names that the parent does not have
	atFront int       // how many of fresh are at the front, once they are in order
	own     nameTable // numbers of the names in fresh
	kernel  []uint32  // names by offset in the kernel's strings, from 1

	names [2][]uint32 // memory for those of a kernel and of a module
	seen  []int       // the last call of parse that has a name, by its number
	calls int         // number of calls of parse
}

// idleParsed has memory for chunks to be encoded.
var idleParsed = sync.Pool{New: func() any { return new(parsed) }}

// newParsed returns a chunk without units. Its memory can be given back with release.
func newParsed(k *known) *parsed {
	p := idleParsed.Get().(*parsed)
	p.known, p.starts = k, append(p.starts[:0], 0, 0)
	if len(p.own.slots) == 0 {
		p.own = newNameTable(0)
	}
	return p
}

// release gives the memory back.
func (p *parsed) release() {
	clear(p.units)
	clear(p.fresh)
	clear(p.own.slots)
	p.known, p.kernel, p.own.count = nil, nil, 0
	p.units, p.words, p.strings, p.fresh = p.units[:0], p.words[:0], p.strings[:0], p.fresh[:0]
	idleParsed.Put(p)
}

// end drops the memory that only adding units needs. It may be called if nothing else uses p.known.
func (p *parsed) end() {
	p.own, p.names, p.kernel, p.seen = nameTable{}, [2][]uint32{}, nil, nil
	p.known.names = nameTable{}
}

// numTypes returns the number of types, void included.
func (p *parsed) numTypes() int { return len(p.starts) - 1 }

// record returns the record of a type.
func (p *parsed) record(id uint32) []uint32 {
	from, to := p.starts[id], p.starts[id+1]
	return p.words[from:to:to]
}

// number returns the number of a name, which may be new.
func (p *parsed) number(text []byte) uint32 {
	if s, _ := p.known.names.find(text, p.known.name); s.number > 0 {
		return s.number - 1
	}
	first := uint32(p.known.st.names.count)
	p.own.grow(first, p.name)
	s, hash := p.own.find(text, p.name)
	if s.number == 0 {
		p.fresh = append(p.fresh, text)
		*s = nameSlot{hash, first + uint32(len(p.fresh))}
		p.own.count++
	}
	return s.number - 1
}

// name returns a name of fresh.
func (p *parsed) name(n uint32) []byte { return p.fresh[int(n)-p.known.st.names.count] }

// text adds lines, which all begin with a prefix.
func (p *parsed) text(prefix string, lines []byte) {
	first := len(p.strings)
	for line := range bytes.Lines(lines) {
		p.strings = append(p.strings, p.number(line[len(prefix):len(line)-1]))
	}
	p.units = append(p.units, unit{name: prefix, strings: len(p.strings) - first, size: int64(len(lines))})
}

// bytes adds BTF without a model.
func (p *parsed) bytes(m Module) {
	p.units = append(p.units, unit{name: m.Name, size: int64(len(m.BTF)), rest: m.BTF})
}

// btf adds the BTF of a kernel, or of a module behind its kernel's, as bytes if it does not have the usual form.
func (p *parsed) btf(m Module) {
	types, strings, fresh := p.numTypes(), len(p.strings), len(p.fresh)
	if rest, ok := p.parse(m.BTF); ok {
		p.units = append(p.units, unit{
			name: m.Name, types: p.numTypes() - types, strings: len(p.strings) - strings,
			size: int64(len(m.BTF)), rest: rest,
		})
		return
	}
	for _, name := range slices.Backward(p.fresh[fresh:]) {
		p.own.remove(name, p.name)
	}
	p.starts, p.strings, p.fresh = p.starts[:types+1], p.strings[:strings], p.fresh[:fresh]
	p.words = p.words[:p.starts[types]]
	p.bytes(m)
}

// parse adds the types and strings of BTF and returns the rest, unless the BTF does not have the usual form.
func (p *parsed) parse(blob []byte) (rest []byte, ok bool) {
	s, err := readSections(blob, int64(len(blob)))
	if err != nil {
		return nil, false
	}
	strs := section(blob, s.Strings)
	if len(strs) > 0 && strs[len(strs)-1] != 0 {
		return nil, false
	}
	room := &p.names[min(len(p.units), 1)]
	names := clean(*room, len(strs))
	*room = names
	if !p.addStrings(strs, names) {
		return nil, false
	}
	if len(p.units) == 0 && (len(names) == 0 || names[0] != 1) {
		return nil, false
	}
	first := p.numTypes()
	if !p.records(section(blob, s.Types), s.Order) {
		return nil, false
	}
	ok = p.renumber(first, names)
	if len(p.units) == 0 {
		p.kernel = names
	}
	return s.without(blob), ok
}

// addStrings adds strings and sets the numbers of names plus 1, by offset. It reports false if two are equal.
func (p *parsed) addStrings(strs []byte, names []uint32) bool {
	p.calls++
	for off := 0; off < len(strs); {
		t := strs[off:]
		t = t[:bytes.IndexByte(t, 0)]
		n := p.number(t)
		if p.seen = slices.Grow(p.seen, max(int(n)+1-len(p.seen), 0)); int(n) >= len(p.seen) {
			p.seen = p.seen[:n+1]
		}
		if p.seen[n] == p.calls {
			return false
		}
		p.seen[n] = p.calls
		names[off] = n + 1
		p.strings = append(p.strings, n)
		off += len(t) + 1
	}
	return true
}

// renumber replaces offsets of names and type IDs in the records from first on by numbers of names and records. It reports false if one
// does not exist.
func (p *parsed) renumber(first int, names []uint32) (ok bool) {
	inKernel := 0 // types
	if len(p.units) > 0 {
		inKernel = p.units[0].types
	}
	ok = true
	for id := first; id < p.numTypes(); id++ {
		t := p.record(uint32(id))
		eachName(t, func(i int) {
			n := uint32(0)
			if at := int(t[i]); at < len(p.kernel) {
				if n = p.kernel[at]; n > 1 && int(n-1) < len(p.seen) && p.seen[n-1] == p.calls {
					n = 0 // the module has this name, too, so a reader would take that one
				}
			} else if at -= len(p.kernel); at < len(names) {
				n = names[at]
			}
			ok = ok && n > 0
			t[i] = n - 1
		})
		eachRef(t, func(i int) {
			if t[i] > uint32(inKernel) {
				t[i] += uint32(first - 1 - inKernel)
			}
			ok = ok && int(t[i]) < p.numTypes()
		})
	}
	return ok
}

// records adds the records of types without a change.
func (p *parsed) records(b []byte, order binary.ByteOrder) bool {
	at := len(p.words)
	p.words = slices.Grow(p.words, len(b)/4)[:at+len(b)/4]
	all := p.words[at:]
	for i := range all {
		all[i] = order.Uint32(b[4*i:])
	}
	for len(all) > 0 {
		if len(all) < 3 {
			return false
		}
		n := recordLen(all[1])
		if n == 0 || n > uint64(len(all)) {
			return false
		}
		if l := &layouts[kindOf(all)]; !l.named && all[0] != 0 || l.third == btf.Data && all[2] != 0 {
			return false
		}
		at += int(n)
		p.starts = append(p.starts, uint32(at))
		all = all[n:]
	}
	return true
}

// encode returns the payloads of a chunk. m is what of it the parent has.
func (p *parsed) encode(parent *state, m *matching) (out payloads, err error) {
	d := decoders.Get().(*decoder)
	defer d.release()
	d.parent = parent
	e := &encoder{decoder: d, ranks: make([]uint32, m.numEnts+1)}
	first := 1
	for i := range p.units {
		u := &p.units[i]
		u.front = 0
		for _, front := range m.front[first:][:u.types] {
			if front {
				u.front++
			}
		}
		first += u.types
		e.front[streamUnits] = u.append(e.front[streamUnits])
	}
	encodeNames(&e.front, p.fresh[:p.atFront])
	encodeNames(&e.back, p.fresh[p.atFront:])
	front, all := m.orders(parent)
	copy(e.front[streamTypes:], encodeOrder(front, parent.front.len()))
	copy(e.back[streamTypes:], encodeOrder(all, parent.all.len()))
	late := late{names: len(p.fresh) - p.atFront}
	words := 0
	for i, it := range m.items {
		w, kinds := p.record(uint32(i)+1), &e.front[streamKinds]
		switch {
		case it.kind == runCopy:
			continue
		case !m.front[i+1]:
			kinds = &e.back[streamKinds]
			late.contents++
			if it.kind == runNext {
				late.entities++
			}
		}
		*kinds = append(*kinds, byte(w[1]>>24))
		words += len(w)
	}
	size := int64(0)
	for _, u := range p.units {
		size += u.size
	}
	for i := range streamStrings {
		e.decoder.in[i], e.decoder.back[i] = btfa.NewCursor(e.front[i]), btfa.NewCursor(e.back[i])
	}
	if err := e.begin(len(e.front[streamKinds]), late, words, math.MaxInt32, size); err != nil {
		return out, err
	}
	e.contents(p, m)
	copy(e.back[streamStrings:], p.order(e.st, parent.names.count, parent.strings))
	out.front = join(&e.front, late.names, late.entities)
	if slices.ContainsFunc(e.back[:], func(s []byte) bool { return len(s) > 0 }) {
		out.back = join(&e.back)
	}
	return out, nil
}

// append appends the unit as streamUnits has it.
func (u *unit) append(b []byte) []byte {
	b = append(append(b, u.name...), 0)
	for _, n := range []int{int(u.size), u.types, u.front, u.strings, len(u.rest)} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return append(b, u.rest...)
}

// encodeNames encodes new names.
func encodeNames(out *[numStreams][]byte, names [][]byte) {
	var last []byte
	for _, t := range names {
		n := 0
		for n < min(len(t), len(last), 255) && t[n] == last[n] {
			n++
		}
		out[streamShared] = append(out[streamShared], byte(n))
		out[streamText] = append(append(out[streamText], t[n:]...), 0)
		last = t
	}
}

// encodeOrder returns the streams of an order of types, where the parent has n types.
func encodeOrder(items []item, n int) [][]byte {
	o := orderWriter{kinds: 1}
	if !isWhole(items, n) {
		o.add(items)
	}
	return o.streams[:]
}

// order returns the streams of the order of strings. Each is one of the parent's list, the next in the order of use, or has a number.
func (p *parsed) order(st *state, known int, from []uint32) [][]byte {
	// The next position of each name in the parent's list, from 1: lines may occur more than once.
	at, next := make([]uint32, known), make([]uint32, len(from))
	for i := len(from) - 1; i >= 0; i-- {
		n := from[i]
		at[n], next[i] = uint32(i)+1, at[n]
	}
	o := orderWriter{kinds: 2}
	uses := newUses(st)
	list := p.strings
	for _, u := range st.units {
		uses.unit(u)
		items := make([]item, 0, u.strings)
		last := item{kind: runNext}
		for _, n := range list[:u.strings] {
			copied := item{runCopy, 0}
			if n < uint32(known) {
				copied.at = at[n] - 1
			}
			it := item{runOld, n}
			switch used, ok := uses.next(); {
			case int(n) < known && at[n] > 0 && last == item{runCopy, copied.at - 1}:
				it = copied
			case last == item{runOld, n - 1}:
			case ok && used == n:
				it = item{kind: runNext}
			case int(n) < known && at[n] > 0:
				it = copied
			}
			if it.kind == runCopy {
				at[n] = next[it.at]
			}
			uses.taken[n] = true
			items = append(items, it)
			last = it
		}
		o.add(items)
		list = list[u.strings:]
	}
	if slices.Equal(p.strings, from) {
		return make([][]byte, orderStreams)
	}
	return o.streams[:]
}
