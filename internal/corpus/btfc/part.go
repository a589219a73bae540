// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
)

// Query selects types by name, and says how far to follow their references. It does not change and is safe for concurrent use.
type Query struct {
	names *btf.Names
	reach []btf.Reach // by number of the name
}

// NewQuery returns a query for types with these names, in any flavor.
func NewQuery(reach map[string]btf.Reach) *Query {
	q := new(Query)
	var names []string
	for _, m := range []map[string]btf.Reach{reach, longs} {
		for name, r := range m {
			names = append(names, name)
			q.reach = append(q.reach, r)
		}
	}
	q.names = btf.NewNames(names)
	return q
}

// longs has the names of the types that show the size of pointers.
var longs = func() map[string]btf.Reach {
	m := make(map[string]btf.Reach)
	for _, name := range btf.LongNames {
		m[name] = btf.ReachValue
	}
	return m
}()

// For returns a reader of the same file whose Part method reads what q selects. It has a cache of its own.
func (f *File) For(q *Query) *File {
	of := newFile(f.r, f.entries, q)
	of.packages, of.end = f.packages, f.end
	return of
}

// ErrWhole is returned for a kernel that must be read as a whole.
var ErrWhole = errors.New("cannot be read in part")

// Part appends BTF to out with the types of kernel i that the query selects, the types that they refer to as far as it says, and the types
// that show the size of pointers. They are in the kernel's order, as many times as in the kernel, and in its byte order. References to
// other types refer to void. Kernels with the same types in the same order give the same bytes. The error is ErrWhole if only the whole
// kernel would do.
func (f *File) Part(ctx context.Context, i int, out []byte) ([]byte, error) {
	e := f.entries[i]
	if f.query == nil || e.Plain || e.Modules > 0 {
		return out, ErrWhole
	}
	st, err := f.states.get(ctx, chunkID{partBTF, i})
	if err != nil {
		return out, err
	}
	rest := st.units[0].rest
	s, err := readSections(rest, e.Size)
	if err != nil || btf.CheckHeader(rest, e.Size) != nil {
		return out, ErrWhole
	}
	b := builders.Get().(*builder)
	defer builders.Put(b)
	b.ids, b.names = clean(b.ids, int(st.numEnts)+1), clean(b.names, st.names.n)
	if err := b.place(st, st.types, 0); err != nil {
		return out, err
	}
	if err := b.reach(st); err != nil {
		return out, err
	}
	return b.part(st, s.Order, out), nil
}

// ask notes which of a state's new names and contents a query selects.
func (c *codec) ask(q *Query) error {
	p, st := c.parent, c.st
	for i := uint32(p.names.n); int(i) < st.names.n; i++ {
		found, err := q.names.Numbers(st.names.at(i))
		if err != nil {
			return err
		}
		for _, n := range found {
			note := &st.names.all[i>>pageBits].notes[i%pageLen]
			*note = max(*note, uint32(q.reach[n]))
		}
	}
	st.found = slices.Clip(p.found)
	for i := uint32(p.contents.n); int(i) < st.contents.n; i++ {
		w := st.content(i)
		if st.asked(w[0]) > 0 && kindOf(w).Shape().Named {
			st.found = append(st.found, i)
		}
	}
	return nil
}

// reach computes how far to look from each type, by its ID.
func (b *builder) reach(st *state) error {
	b.far = clean(b.far, len(st.types)+1)
	b.todo = b.todo[:0]
	missing := 0
	add := func(e uint32, r btf.Reach) {
		id := b.ids[e]
		if id == 0 && e != 0 {
			missing++
		}
		if id != 0 && r > b.far[id] {
			b.far[id] = r
			b.todo = append(b.todo, id)
		}
	}
	for _, c := range st.found {
		if id := b.ids[st.entity(c)]; id != 0 && st.types[id-1] == c {
			add(st.entity(c), st.asked(st.content(c)[0]))
		}
	}
	for len(b.todo) > 0 {
		id := b.todo[len(b.todo)-1]
		b.todo = b.todo[:len(b.todo)-1]
		w := st.content(st.types[id-1])
		if r := b.far[id].Then(kindOf(w)); r > 0 {
			eachRef(w, func(i int) { add(w[i], r) })
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d references to missing types", missing)
	}
	return nil
}

// part appends BTF with the types that are reached.
func (b *builder) part(st *state, order binary.ByteOrder, out []byte) []byte {
	var types []uint32
	text := []byte{0}
	for id, r := range b.far[1:] {
		c := st.types[id]
		if b.ids[st.entity(c)] = 0; r == 0 {
			continue
		}
		types = append(types, c)
		b.ids[st.entity(c)] = uint32(len(types))
		w := st.content(c)
		eachName(w, func(i int) {
			if n := w[i]; n != 0 && b.names[n] == 0 {
				b.names[n] = uint32(len(text))
				text = append(text, st.names.at(n)...)
			}
		})
	}
	size := st.bytes(types)
	out = slices.Grow(out, btf.HeaderLen+size+len(text))
	head := out[len(out):][:btf.HeaderLen]
	clear(head)
	order.PutUint16(head, btf.Magic)
	head[2] = btf.Version
	for i, v := range []int{btf.HeaderLen, 0, size, size, len(text)} {
		order.PutUint32(head[4+4*i:], uint32(v))
	}
	out = out[:len(out)+btf.HeaderLen+size]
	b.write(st, types, order, out[len(out)-size:])
	return append(out, text...)
}
