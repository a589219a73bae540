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

// rest returns all of a blob except its sections.
func (s *sections) rest(blob []byte) []byte {
	out := append([]byte(nil), blob[:s.first.Off]...)
	out = append(out, blob[s.first.Off+s.first.Len:s.second.Off]...)
	return append(out, blob[s.second.Off+s.second.Len:]...)
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
	ids   []uint32 // type IDs by entity
	names []uint32 // offsets by name
	base  *builder // of modules: that of their kernel

	// For parts:
	far      []btf.Reach // by type ID
	todo     []uint32    // type IDs
	renumber []uint32    // new type IDs
	text     []byte
	record   []uint32
}

// builders has idle builders.
var builders = sync.Pool{New: func() any { return new(builder) }}

// clean returns n zeros, in b's memory if there is enough.
func clean[T any](b []T, n int) []T {
	b = grow(b, n)
	clear(b)
	return b
}

// grow returns n arbitrary values, in b's memory if there is enough.
func grow[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n, n+n/8)
	}
	return b[:n]
}

// build appends the BTF of a kernel, which has size bytes, to out.
func (b *builder) build(st *state, size int64, out []byte) ([]byte, error) {
	s, err := readSections(st.rest, size)
	if err != nil {
		return nil, err
	}
	at, n := len(out), len(out)+int(size)
	out = slices.Grow(out, int(size))
	blob := out[at:n]
	if err := s.fill(blob, st.rest); err != nil {
		return nil, err
	}
	types, strings := section(blob, s.Types), section(blob, s.Strings)
	if len(types) != st.bytes(st.types) || len(strings) > st.textBytes {
		return nil, errWrong
	}
	if err := b.strings(st, strings); err != nil {
		return nil, fmt.Errorf("strings: %w", err)
	}
	err = b.place(st)
	if err == nil {
		err = b.write(st, st.types, s.Order, types)
	}
	if err != nil {
		return nil, fmt.Errorf("types: %w", err)
	}
	return out[:n], nil
}

// place sets the type IDs of a state's types.
func (b *builder) place(st *state) error {
	b.ids = clean(b.ids, int(st.numEnts)+1)
	var page *contentPage
	last := ^uint32(0) // number of the page, often that of the next content, too
	for i, c := range st.types {
		if n := c >> pageBits; n != last {
			page, last = st.contents[n], n
		}
		e := page.entity[c%pageLen]
		if b.ids[e] != 0 {
			return errWrong
		}
		b.ids[e] = uint32(i) + 1
	}
	return nil
}

// strings writes the string section and sets the offsets of names.
func (b *builder) strings(st *state, out []byte) error {
	b.names = clean(b.names, st.numNames)
	at := uint32(0)
	list, err := st.list()
	if err != nil {
		return err
	}
	for len(list) > 0 {
		first := list[0]
		n := 1
		for n < len(list) && list[n] == first+uint32(n) && list[n]%pageLen > 0 {
			n++
		}
		page := st.names[first>>pageBits]
		ends := page.ends[first%pageLen:][:n+1]
		text := page.text[ends[0]:ends[n]]
		if len(text) > len(out)-int(at) {
			return errWrong
		}
		copy(out[at:], text)
		for i, end := range ends[1:] {
			b.names[first+uint32(i)] = at
			at += end - ends[i]
		}
		list = list[n:]
	}
	if int(at) != len(out) {
		return errWrong
	}
	return nil
}

// write writes types that have been placed and fill out. A missing type or name has the ID or offset 0, as void and the empty name do.
func (b *builder) write(st *state, types []uint32, as binary.ByteOrder, out []byte) error {
	order, all := binary.LittleEndian, out
	ids, names := b.ids, b.names
	missing := uint32(0)
	ref := func(e uint32) uint32 {
		id := uint32(0)
		if int(e) < len(ids) {
			id = ids[e]
		} else {
			id = b.base.ids[e&^inBase]
		}
		if id == 0 && e != 0 {
			missing++
		}
		return id
	}
	name := func(n uint32) uint32 {
		off := uint32(0)
		if int(n) < len(names) {
			off = names[n]
		} else {
			off = b.base.names[n&^inBase]
		}
		if off == 0 && n != 0 {
			missing++
		}
		return off
	}
	for _, c := range types {
		all := st.content(c)
		w, l := all, &layouts[kindOf(all)]
		o := out[:4*len(w)]
		out = out[4*len(w):]
		order.PutUint32(o, name(w[0]))
		order.PutUint32(o[4:], w[1])
		if l.third == btf.Ref {
			order.PutUint32(o[8:], ref(w[2]))
		} else {
			order.PutUint32(o[8:], w[2])
		}
		if len(w) == 3 {
			continue
		}
		w, o = w[3:], o[12:]
		switch {
		case l.ref && l.names == 3:
			for len(w) >= 3 && len(o) >= 12 {
				order.PutUint32(o, name(w[0]))
				order.PutUint32(o[4:], ref(w[1]))
				order.PutUint32(o[8:], w[2])
				w, o = w[3:], o[12:]
			}
		case l.ref:
			for len(w) >= 2 && len(o) >= 8 {
				order.PutUint32(o, name(w[0]))
				order.PutUint32(o[4:], ref(w[1]))
				w, o = w[2:], o[8:]
			}
		default:
			shape := kindOf(all).Shape()
			for i, x := range w {
				word := btf.Data
				if i < len(shape.Extra) {
					word = shape.Extra[i]
				} else if n := len(shape.Elem); n > 0 {
					word = shape.Elem[(i-len(shape.Extra))%n]
				}
				switch word {
				case btf.Ref:
					x = ref(x)
				case btf.Name:
					x = name(x)
				}
				order.PutUint32(o[4*i:], x)
			}
		}
	}
	if as == binary.BigEndian {
		for i := 0; i+4 <= len(all); i += 4 {
			binary.BigEndian.PutUint32(all[i:], order.Uint32(all[i:]))
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d references to missing types or names", missing)
	}
	return nil
}
