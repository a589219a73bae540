// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/btf"
)

// sections locates the type and the string section of a blob.
type sections struct {
	btf.Header
	first, second btf.Section // the two in order
}

var errHeader = errors.New("sections lie outside the BTF or overlap")

// readSections reads the header of a blob of size bytes, with which head begins.
func readSections(head []byte, size int64) (s sections, err error) {
	if s.Header, err = btf.ReadHeader(head, size); err != nil {
		return s, err
	}
	s.first, s.second = s.Types, s.Strings
	if s.second.Off < s.first.Off {
		s.first, s.second = s.second, s.first
	}
	if s.first.Off+s.first.Len > s.second.Off || s.second.Off+s.second.Len > uint64(size) || s.Types.Len%4 != 0 {
		return s, errHeader
	}
	return s, nil
}

// section returns the bytes of a section.
func section(blob []byte, s btf.Section) []byte { return blob[s.Off : s.Off+s.Len] }

// without returns all of a blob except its sections.
func (s *sections) without(blob []byte) []byte {
	return slices.Concat(blob[:s.first.Off], blob[s.first.Off+s.first.Len:s.second.Off], blob[s.second.Off+s.second.Len:])
}

// fill writes rest to a blob.
func (s *sections) fill(blob, rest []byte) error {
	if uint64(len(rest))+s.first.Len+s.second.Len != uint64(len(blob)) {
		return errHeader
	}
	n := copy(blob[:s.first.Off], rest)
	n += copy(blob[s.first.Off+s.first.Len:s.second.Off], rest[n:])
	copy(blob[s.second.Off+s.second.Len:], rest[n:])
	return nil
}

// builder makes BTF of states. It reuses its memory, and is for one goroutine at a time.
type builder struct {
	ids    []uint32 // type IDs by entity
	names  []uint32 // offsets by name
	kernel []uint32 // names, with the strings of a kernel only

	// For parts:
	units    []chosen
	far      []btf.Reach // how far to look from each type, by its position among the types at the front, from 1
	todo     []uint32    // such positions
	selected []bool      // whether the query selects a content
	own      []uint32    // types of a unit
	entities []uint32    // entities of the types in own
	fresh    []uint32    // names that its kernel does not have
	text     []byte
	cut      uint32 // the ID to write for types without one, or 0
}

// builders has idle builders.
var builders = sync.Pool{New: func() any { return new(builder) }}

// release makes b idle, unless it is large.
func (b *builder) release() {
	if 4*(cap(b.ids)+cap(b.names)+cap(b.kernel)) <= reused {
		builders.Put(b)
	}
}

// clean returns n zeros, in b's memory if there is enough.
func clean[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n, n+n/8)
	}
	clear(b[:n])
	return b[:n]
}

// build appends the units of a state to out, except for the first skip ones.
func (b *builder) build(st *state, skip int, out []byte) ([]byte, error) {
	size := int64(0)
	for _, u := range st.units[min(skip, len(st.units)):] {
		size += u.size
	}
	out = slices.Grow(out, int(size))
	err := b.each(st, func(i int, u *unit, write func([]byte) error) error {
		if i < skip {
			return nil
		}
		end := len(out)
		out = out[:end+int(u.size)]
		return write(out[end:])
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// each calls yield for the units of a state, with a function that writes the unit to a slice of its size.
func (b *builder) each(st *state, yield func(i int, u *unit, write func(out []byte) error) error) error {
	list := st.strings
	b.ids, b.names = clean(b.ids, int(st.numEnts)+1), clean(b.names, st.names.count)
	at, inKernel, lenKernel := 0, 0, 0
	for i, u := range st.units {
		own, entities, strings := st.all.contents[at:][:u.types], st.all.entities[at:][:u.types], list[:u.strings]
		at, list = at+u.types, list[u.strings:]
		if err := b.place(entities, inKernel); err != nil {
			return err
		}
		write := func(out []byte) error { return b.unit(st, &u, own, strings, lenKernel, out) }
		if err := yield(i, &u, write); err != nil {
			return err
		}
		if i == 0 {
			if inKernel = u.types; len(st.units) > 1 {
				lenKernel = b.strings(st, strings, 0, nil)
				b.kernel = append(b.kernel[:0], b.names...)
			}
			continue
		}
		b.displace(entities)
		for _, n := range strings {
			b.names[n] = b.kernel[n]
		}
	}
	return nil
}

// unit writes a unit whose types have been placed. Its strings are behind others of base bytes.
func (b *builder) unit(st *state, u *unit, types, strings []uint32, base int, out []byte) error {
	if len(u.rest) == 0 && len(types) == 0 { // lines
		if u.name != "" {
			return lines(st, u.name, strings, out)
		}
		if n := b.strings(st, strings, 0, out); n != len(out) {
			return errWrong
		}
		for i, c := range out {
			if c == 0 {
				out[i] = '\n'
			}
		}
		return nil
	}
	if len(types)+len(strings) == 0 { // bytes
		if copy(out, u.rest) != len(out) || len(u.rest) != len(out) {
			return errWrong
		}
		return nil
	}
	s, err := readSections(u.rest, u.size)
	if err != nil {
		return err
	}
	if err := s.fill(out, u.rest); err != nil {
		return err
	}
	text, records := section(out, s.Strings), section(out, s.Types)
	if b.strings(st, strings, base, text) != len(text) || len(records) != st.bytes(types) {
		return errWrong
	}
	if missing := b.write(st, types, s.Order, records); missing > 0 {
		return fmt.Errorf("types: %d references to missing types or names", missing)
	}
	return nil
}

// lines fills out with names, each with a prefix and a newline.
func lines(st *state, prefix string, names []uint32, out []byte) error {
	for _, n := range names {
		name := st.names.at(n)
		if len(prefix)+len(name) > len(out) {
			return errWrong
		}
		at := copy(out, prefix)
		at += copy(out[at:], name)
		out[at-1] = '\n'
		out = out[at:]
	}
	if len(out) > 0 {
		return errWrong
	}
	return nil
}

// place sets the IDs of types behind others, given their entities. No two types of a unit and its kernel have one entity.
func (b *builder) place(entities []uint32, others int) error {
	for i, e := range entities {
		if b.ids[e] != 0 {
			return errWrong
		}
		b.ids[e] = uint32(others + i + 1)
	}
	return nil
}

// strings sets the offsets of names behind others of base bytes, and writes them to out as far as they fit. It returns how many bytes
// they have. The last of equal strings counts, and the empty name keeps the offset 0.
func (b *builder) strings(st *state, list []uint32, base int, out []byte) int {
	at := base
	for len(list) > 0 {
		first := list[0]
		n := 1
		for n < len(list) && list[n] == first+uint32(n) && list[n]%pageLen > 0 {
			n++
		}
		page := st.names.all[first>>pageBits]
		ends := page.ends[first%pageLen:][:n+1]
		if at-base <= len(out) {
			copy(out[at-base:], page.data[ends[0]:ends[n]])
		}
		for i, end := range ends[1:] {
			if name := first + uint32(i); name != 0 {
				b.names[name] = uint32(at)
			}
			at += int(end - ends[i])
		}
		list = list[n:]
	}
	return at - base
}

// write writes types that have been placed and fill out. A missing type has the ID b.cut, a missing name the offset 0. It returns how many
// are missing.
func (b *builder) write(st *state, types []uint32, as binary.ByteOrder, out []byte) (missing int) {
	order, all := binary.LittleEndian, out
	name := func(x uint32) uint32 {
		v := b.names[x]
		if v == 0 && x != 0 {
			missing++
		}
		return v
	}
	id := func(x uint32) uint32 {
		v := b.ids[x]
		if v == 0 && x != 0 {
			missing++
			v = b.cut
		}
		return v
	}
	for _, c := range types {
		w := st.content(c)
		l := &layouts[kindOf(w)]
		o := out[:4*len(w)]
		out = out[len(o):]
		order.PutUint32(o, name(w[0]))
		order.PutUint32(o[4:], w[1])
		third := w[2]
		if l.third == btf.Ref {
			third = id(third)
		}
		order.PutUint32(o[8:], third)
		if len(w) == 3 {
			continue
		}
		for i, word := range kindOf(w).Shape().Extra {
			x := w[3+i]
			if word == btf.Ref {
				x = id(x)
			}
			order.PutUint32(o[12+4*i:], x)
		}
		w, o = w[l.first:], o[4*int(l.first):]
		for n := int(l.words); len(w) > 0 && len(o) >= 4*n; w, o = w[n:], o[4*n:] {
			x, y := w[0], w[1]
			switch {
			case l.ref:
				x, y = name(x), id(y)
			case l.names > 0:
				x = name(x)
			default: // variables of a DATASEC
				x = id(x)
			}
			order.PutUint32(o, x)
			order.PutUint32(o[4:], y)
			if n == 3 {
				order.PutUint32(o[8:], w[2])
			}
		}
	}
	if as == binary.BigEndian {
		for i := 0; i+4 <= len(all); i += 4 {
			binary.BigEndian.PutUint32(all[i:], order.Uint32(all[i:]))
		}
	}
	return missing
}
