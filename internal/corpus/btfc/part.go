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
	of := newFile(f.r, f.entries, f.end, q)
	of.packages = f.packages
	return of
}

// ErrWhole is returned for a kernel that must be read as a whole.
var ErrWhole = errors.New("cannot be read in part")

// Part appends BTF to out with the types of kernel i that the query selects, the types that they refer to as far as it says, and the types
// that show the size of pointers. They are in the kernel's order, as many times as in the kernel, and in its byte order. Pointers that
// lead further point to void. Kernels with the same types in the same order give the same bytes. The error is ErrWhole if only the
// whole kernel would do.
func (f *File) Part(ctx context.Context, i int, out []byte) ([]byte, error) {
	e := &f.entries[i]
	if f.query == nil || e.Plain || e.Modules > 0 {
		return out, ErrWhole
	}
	st, err := f.states.get(ctx, chunkID{partBTF, i})
	if err != nil {
		return out, err
	}
	sec, err := readSections(st.rest, e.Size)
	if err != nil || btf.CheckHeader(st.rest, e.Size) != nil {
		return out, ErrWhole
	}
	b := builders.Get().(*builder)
	defer builders.Put(b)
	return b.part(st, sec.Order, out)
}

// ask notes which of a state's new names and contents a query selects.
func (r *reader) ask(q *Query) error {
	p, st := r.parent, r.state
	for i := p.numNames; i < st.numNames; i++ {
		page, at := st.names[i>>pageBits], i%pageLen
		found, err := q.names.Numbers(page.text[page.ends[at]:])
		if err != nil {
			return err
		}
		for _, n := range found {
			page.asked[at] = max(page.asked[at], q.reach[n])
		}
	}
	st.found = slices.Clip(p.found)
	for c := uint32(p.numContents); int(c) < st.numContents; c++ {
		w := st.content(c)
		if st.asked(w[0]) > 0 && kindOf(w).Shape().Named {
			st.found = append(st.found, c)
		}
	}
	return nil
}

// part appends the selected part of a kernel to out.
func (b *builder) part(st *state, order binary.ByteOrder, out []byte) ([]byte, error) {
	if err := b.place(st); err != nil {
		return out, err
	}
	if err := b.reach(st); err != nil {
		return out, err
	}
	b.number()
	return b.writePart(st, order, out), nil
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

// number lists the IDs of the types that are reached, and assigns new ones.
func (b *builder) number() {
	b.todo = b.todo[:0]
	b.renumber = grow(b.renumber, len(b.far))
	for id, r := range b.far {
		if r > 0 {
			b.todo = append(b.todo, uint32(id))
			b.renumber[id] = uint32(len(b.todo))
		}
	}
}

// writePart appends BTF with the listed types.
func (b *builder) writePart(st *state, order binary.ByteOrder, out []byte) []byte {
	b.names = clean(b.names, st.numNames)
	b.text = append(b.text[:0], 0)
	o := binary.AppendByteOrder(binary.LittleEndian)
	if order == binary.BigEndian {
		o = binary.BigEndian
	}
	types := 0 // bytes
	for _, id := range b.todo {
		types += 4 * len(st.content(st.types[id-1]))
	}
	head := len(out)
	out = slices.Grow(out, btf.HeaderLen+types+min(types/4, 1<<17)) // the size of names is a guess
	out = append(out, make([]byte, btf.HeaderLen)...)
	name := func(n uint32) uint32 {
		if n != 0 && b.names[n] == 0 {
			b.names[n] = uint32(len(b.text))
			b.text = append(b.text, st.name(n)...)
		}
		return b.names[n]
	}
	for _, id := range b.todo {
		w := st.content(st.types[id-1])
		record := append(b.record[:0], w...)
		b.record = record
		eachName(w, func(i int) { record[i] = name(w[i]) })
		follow := b.far[id].Then(kindOf(w)) > 0
		eachRef(w, func(i int) {
			if record[i] = 0; follow && w[i] != 0 {
				record[i] = b.renumber[b.ids[w[i]]]
			}
		})
		for _, x := range record {
			out = o.AppendUint32(out, x)
		}
	}
	h := append(o.AppendUint16(out[:head], btf.Magic), btf.Version, 0)
	for _, v := range []uint32{btf.HeaderLen, 0, uint32(types), uint32(types), uint32(len(b.text))} {
		h = o.AppendUint32(h, v)
	}
	return append(out, b.text...)
}
