// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/btfgen/btfgen/internal/btf"
)

// sections is where the sections of a BTF blob are.
type sections struct {
	order          binary.ByteOrder
	types, strings span
	size           uint64
}

type span struct{ start, end uint64 }

var errHeader = errors.New("no header that is understood")

// parseSections reads a header, which is all of rest but what lies behind it. The sections are within size.
func parseSections(head []byte, size uint64) (s sections, err error) {
	if len(head) < btf.HeaderLen {
		return s, errHeader
	}
	switch uint16(btf.Magic) {
	case binary.LittleEndian.Uint16(head):
		s.order = binary.LittleEndian
	case binary.BigEndian.Uint16(head):
		s.order = binary.BigEndian
	default:
		return s, errHeader
	}
	u32 := func(i int) uint64 { return uint64(s.order.Uint32(head[i:])) }
	n := u32(4)
	s.types = span{n + u32(8), n + u32(8) + u32(12)}
	s.strings = span{n + u32(16), n + u32(16) + u32(20)}
	s.size = size
	a, b := s.types, s.strings
	if b.start < a.start {
		a, b = b, a
	}
	if n < btf.HeaderLen || a.end > b.start || b.end > size || (s.types.end-s.types.start)%4 != 0 {
		return s, errHeader
	}
	return s, nil
}

// builder makes BTF of states. Its memory is used again. It is for one goroutine at a time.
type builder struct {
	ids   []uint32 // type IDs by entity
	names []uint32 // offsets by name

	// For parts:
	far      []btf.Reach // by type ID
	todo     []uint32    // type IDs
	renumber []uint32    // new type IDs, of those that have some
	text     []byte
	record   []uint32
}

// clean returns n zeros, in b's memory if there is enough.
func clean[T any](b []T, n int) []T {
	b = grow(b, n)
	clear(b)
	return b
}

// grow returns n values, whatever they are, in b's memory if there is enough.
func grow[T any](b []T, n int) []T {
	if cap(b) < n {
		return make([]T, n, n+n/8)
	}
	return b[:n]
}

// reserve returns b with room for n more bytes. Unlike slices.Grow, it does not clear them.
func reserve(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b
	}
	n += len(b)
	room := make([]byte, n, n+n/8)
	if len(b) > 0 { // make and copy next to each other would clear what is new
		copy(room, b)
	}
	return room[:len(b)]
}

// build appends the BTF of a kernel, of which size bytes are expected, to out. Another goroutine does half of it.
func (b *builder) build(ctx context.Context, st *state, size int64, out []byte) ([]byte, error) {
	s, err := parseSections(st.rest, uint64(size))
	if err != nil {
		return nil, err
	}
	at, n := len(out), len(out)+int(size)
	out = reserve(out, int(size))
	blob := out[at:n]
	if err := s.fill(blob, st.rest); err != nil {
		return nil, err
	}
	types, strings := blob[s.types.start:s.types.end], blob[s.strings.start:s.strings.end]
	if len(types) != st.bytes(st.types) || len(strings) > st.textBytes {
		return nil, errWrong
	}
	placed := begin(ctx, func() (struct{}, error) { return struct{}{}, b.place(st) })
	err = b.strings(st, strings)
	_, failed := placed.get()
	if err != nil {
		return nil, fmt.Errorf("strings: %w", err)
	}
	if failed == nil {
		failed = b.types(ctx, st, s.order, types)
	}
	if failed != nil {
		return nil, fmt.Errorf("types: %w", failed)
	}
	return out[:n], nil
}

// fill writes what is neither in the type nor in the string section.
func (s *sections) fill(blob, rest []byte) error {
	first, second := s.types, s.strings
	if second.start < first.start {
		first, second = second, first
	}
	if uint64(len(rest))+first.end-first.start+second.end-second.start != uint64(len(blob)) {
		return errHeader
	}
	n := copy(blob[:first.start], rest)
	n += copy(blob[first.end:second.start], rest[n:])
	copy(blob[second.end:], rest[n:])
	return nil
}

// strings writes the string section.
func (b *builder) strings(st *state, out []byte) error {
	b.names = clean(b.names, st.numNames)
	at := uint32(0)
	list, err := st.strings()
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

// types writes the type section of types that have been placed, which is as large as they are. That all that it refers to is there, and once, is checked on the way: what is not has
// no place, which is 0, as void and the empty name have.
func (b *builder) types(ctx context.Context, st *state, order binary.ByteOrder, out []byte) error {
	half := len(st.types) / 2
	at := st.bytes(st.types[:half])
	first := begin(ctx, func() (struct{}, error) { return struct{}{}, b.write(st, st.types[:half], order, out[:at]) })
	err := b.write(st, st.types[half:], order, out[at:])
	_, failed := first.get()
	return cmp.Or(failed, err)
}

// layout is how the words of a kind are read and written.
type layout struct {
	third   btf.Word
	first   uint8 // where elements begin
	words   uint8 // of an element, or 0
	names   uint8 // the same where elements begin with a name, else 0
	elem    uint8 // the same, but for kinds that are written word by word
	ref     bool  // the second word of an element is a reference
	class   class // of elements and of the words before them
	named   bool
	counted bool // see hasCount
}

func layoutOf(w []uint32) *layout { return &layouts[w[1]>>24&0x7f] }

var layouts = func() (l [btf.NumKinds]layout) {
	for k := range l {
		s := btf.Kind(k).Shape()
		l[k].third, l[k].first, l[k].words = s.Third, uint8(3+len(s.Extra)), uint8(len(s.Elem))
		l[k].class, l[k].named, l[k].counted = elemClass(btf.Kind(k)), !nameless(btf.Kind(k)), hasCount(btf.Kind(k))
		if len(s.Elem) > 0 && s.Elem[0] == btf.Name {
			l[k].names = uint8(len(s.Elem))
		}
		if len(s.Extra) == 0 && len(s.Elem) > 0 && s.Elem[0] == btf.Name {
			l[k].elem = uint8(len(s.Elem))
			l[k].ref = s.Elem[1] == btf.Ref
		}
	}
	return l
}()

// write writes types whose bytes have been counted.
func (b *builder) write(st *state, types []uint32, as binary.ByteOrder, out []byte) error {
	order, all := binary.LittleEndian, out
	ids, names := b.ids, b.names
	missing := uint32(0) // references to what is not there
	ref := func(e uint32) uint32 {
		id := ids[e]
		if id == 0 && e != 0 {
			missing++
		}
		return id
	}
	name := func(n uint32) uint32 {
		off := names[n]
		if off == 0 && n != 0 {
			missing++
		}
		return off
	}
	for _, c := range types {
		w := st.content(c)
		k := btf.Kind(w[1] >> 24 & 0x7f)
		l := &layouts[k]
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
		case l.elem == 3 && l.ref:
			for len(w) >= 3 && len(o) >= 12 {
				order.PutUint32(o, name(w[0]))
				order.PutUint32(o[4:], ref(w[1]))
				order.PutUint32(o[8:], w[2])
				w, o = w[3:], o[12:]
			}
		case l.elem == 2 && l.ref:
			for len(w) >= 2 && len(o) >= 8 {
				order.PutUint32(o, name(w[0]))
				order.PutUint32(o[4:], ref(w[1]))
				w, o = w[2:], o[8:]
			}
		default:
			shape := k.Shape()
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
		return fmt.Errorf("%d references to what is not there", missing)
	}
	return nil
}
