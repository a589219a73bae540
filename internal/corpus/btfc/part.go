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
	reach []btf.Reach // how far to look from types of a name, by its number in names
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

// For returns a reader of the same file whose Part method reads what q selects.
func (f *File) For(q *Query) *File {
	of := &File{reader: f.reader, entries: f.entries, packages: f.packages, end: f.end, states: f.states}
	of.fronts = newCache(of, q)
	return of
}

// ErrWhole is returned for a kernel that must be read as a whole.
var ErrWhole = errors.New("cannot be read in part")

// Part is what a query selects of a kernel and its modules.
type Part struct {
	BTF     []byte   // the kernel's BTF
	Modules []Module // those with selected types, on top of BTF
	Size    int64    // bytes of the kernel and the chosen modules as a whole
}

// Part reads the types that the query selects of kernel i and of the modules that choose accepts, the types that they refer to as far as
// it says, and the types that show the size of pointers. They are in the kernel's order, as many times as in the kernel, and in its byte
// order. The last type of the kernel, a pointer to void, takes the place of all others: references to types that were left out refer to it.
// Kernels with the same types in the same order give the same bytes. The kernel's BTF is appended to out. If choose is nil, modules are
// not read. The error is ErrWhole if only the whole kernel would do.
func (f *File) Part(ctx context.Context, i int, choose func(module string) bool, out []byte) (*Part, error) {
	e := f.entries[i]
	id := chunkID{partBTF, i}
	if choose != nil && e.has(partModules) {
		id.part = partModules
	}
	if f.fronts == nil || e.Plain {
		return nil, ErrWhole
	}
	r, err := f.fronts.open(ctx, id)
	if err != nil {
		return nil, err
	}
	defer r.close()
	st, err := r.get(ctx, id)
	if err != nil {
		return nil, err
	}
	b := builders.Get().(*builder)
	defer b.release()
	return b.partOf(st, choose, out)
}

// partOf returns the part of a state for a query.
func (b *builder) partOf(st *state, choose func(string) bool, out []byte) (*Part, error) {
	kernel := st.units[0]
	s, err := readSections(kernel.rest, kernel.size)
	if err != nil || btf.CheckHeader(kernel.rest, kernel.size) != nil {
		return nil, ErrWhole
	}
	if err := b.chooseUnits(st, choose); err != nil {
		return nil, err
	}
	b.ids, b.names = clean(b.ids, int(st.numEnts)+1), clean(b.names, st.names.count)
	if err := b.reach(st); err != nil {
		return nil, err
	}
	p := &Part{Size: kernel.size}
	for _, u := range b.units[1:] {
		p.Size += u.size
	}
	return p, b.parts(st, s.Order, p, out)
}

// note notes which names of a state, behind those of its parent p, the query selects. It has none at the back yet.
func (q *Query) note(p, st *state) error {
	for i := uint32(p.names.count); int(i) < st.names.count; i++ {
		found, err := q.names.Numbers(st.names.at(i))
		if err != nil {
			return err
		}
		for _, n := range found {
			page := st.names.all[i>>pageBits]
			if page.notes == nil {
				page.notes = make([]btf.Reach, pageLen)
			}
			page.notes[i%pageLen] = max(page.notes[i%pageLen], q.reach[n])
		}
	}
	return nil
}

// chosen is a unit that a part is made of.
type chosen struct {
	unit
	first int // position of its first type among those at the front
}

// chooseUnits sets b.units to the kernel and the modules that choose accepts. The error is ErrWhole if one of these is stored as bytes.
func (b *builder) chooseUnits(st *state, choose func(string) bool) error {
	b.units = b.units[:0]
	first := 0
	for i, u := range st.units {
		if i == 0 || choose(u.name) {
			if u.types+u.strings == 0 && i > 0 {
				return ErrWhole
			}
			b.units = append(b.units, chosen{u, first})
		}
		first += u.front
	}
	return nil
}

// reach computes how far to look from each type of b.units, by its position among the types at the front, from 1. It leaves the types of
// the kernel placed.
func (b *builder) reach(st *state) error {
	b.far = clean(b.far, st.front.len()+1)
	b.todo = b.todo[:0]
	b.selected = clean(b.selected, st.contents.count)
	for _, c := range st.found {
		b.selected[c] = true
	}
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
	for i, u := range b.units {
		own, entities := st.front.contents[u.first:][:u.front], st.front.entities[u.first:][:u.front]
		if err := b.place(entities, u.first); err != nil {
			return err
		}
		for i, c := range own {
			if b.selected[c] {
				add(entities[i], st.asked(st.content(c)[0]))
			}
		}
		for len(b.todo) > 0 {
			id := b.todo[len(b.todo)-1]
			b.todo = b.todo[:len(b.todo)-1]
			w := st.content(st.front.contents[id-1])
			if r := b.far[id].Then(kindOf(w)); r > 0 {
				eachRef(w, func(i int) { add(w[i], r) })
			}
		}
		if i > 0 {
			b.displace(entities)
		}
	}
	if missing > 0 {
		return fmt.Errorf("%d references to missing types", missing)
	}
	return nil
}

// displace undoes place.
func (b *builder) displace(entities []uint32) {
	for _, e := range entities {
		b.ids[e] = 0
	}
}

// parts sets the BTF and the modules of p to the types that reach has found.
func (b *builder) parts(st *state, order binary.ByteOrder, p *Part, out []byte) error {
	b.displace(st.front.entities[:b.units[0].front])
	types, text := 0, 0 // types and bytes of strings of the kernel
	missing := false    // a name is at the back
	defer func() { b.cut = 0 }()
	for i, u := range b.units {
		own, entities, names := b.own[:0], b.entities[:0], b.fresh[:0]
		b.text = b.text[:0]
		if i == 0 {
			b.text = append(b.text, 0)
		}
		for at, r := range b.far[1+u.first:][:u.front] {
			if r == 0 {
				continue
			}
			c := st.front.contents[u.first+at]
			own, entities = append(own, c), append(entities, st.front.entities[u.first+at])
			b.ids[entities[len(entities)-1]] = uint32(types + len(own))
			w := st.content(c)
			eachName(w, func(i int) {
				if n := w[i]; n != 0 && b.names[n] == 0 {
					names = append(names, n)
					b.names[n] = uint32(text + len(b.text))
					name := st.names.at(n)
					b.text = append(b.text, name...)
					missing = missing || len(name) == 0
				}
			})
		}
		b.own, b.entities, b.fresh = own, entities, names
		if i == 0 {
			types, text = len(own)+1, len(b.text)
			b.cut = uint32(types)
			p.BTF = b.part(st, order, cutType, out)
			continue
		}
		if len(own) > 0 {
			p.Modules = append(p.Modules, Module{u.name, b.part(st, order, nil, nil)})
		}
		b.displace(entities)
		for _, n := range names {
			b.names[n] = 0
		}
	}
	if missing {
		return errWrong
	}
	return nil
}

// cutType is the record of the type in place of those that were left out.
var cutType = []uint32{0, uint32(btf.KindPtr) << 24, 0}

// part appends BTF with the types b.own, the record last, and the strings b.text.
func (b *builder) part(st *state, order binary.ByteOrder, last []uint32, out []byte) []byte {
	size := st.bytes(b.own) + 4*len(last)
	out = slices.Grow(out, btf.HeaderLen+size+len(b.text))
	head := out[len(out):][:btf.HeaderLen]
	clear(head)
	order.PutUint16(head, btf.Magic)
	head[2] = btf.Version
	for i, v := range []int{btf.HeaderLen, 0, size, size, len(b.text)} {
		order.PutUint32(head[4+4*i:], uint32(v))
	}
	out = out[:len(out)+btf.HeaderLen+size]
	records := out[len(out)-size:]
	b.write(st, b.own, order, records[:size-4*len(last)])
	for i, w := range last {
		order.PutUint32(records[size-4*len(last)+4*i:], w)
	}
	return append(out, b.text...)
}
