// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
)

// slotID identifies a slot before the slots are numbered. The first type with a name
// in a BTF has ordinal 0, the next type with that name 1.
type slotID struct {
	name    string
	ordinal int
}

// definition is a named type and the anonymous types inside it, as variant.shape has
// them, but with their numbers, and with references to definitions of the same BTF.
type definition struct {
	slot  slotID
	types []canonical.Type
}

// definitions is one BTF, cut into definitions.
type definitions struct {
	list      []definition
	bigEndian bool
}

// definer cuts one BTF into definitions.
type definer struct {
	btf      *btf.BTF
	roots    []btf.TypeID // first type of each definition
	ordinals map[string]int
	defs     definitions
	index    []int        // definition that begins with each type ID, or -1
	local    []int        // position of each type ID in the last definition that has the type
	in       []btf.TypeID // root of that definition for each type ID, 0 for none
}

// define cuts a minimized BTF into definitions. It does not check that the BTF is
// canonical.
func define(data []byte) (definitions, error) {
	b, err := btf.New(data, nil)
	if err != nil {
		return definitions{}, err
	}
	n := b.NumTypes()
	d := &definer{btf: b, ordinals: make(map[string]int), index: slices.Repeat([]int{-1}, n), local: make([]int, n), in: make([]btf.TypeID, n)}
	d.defs.bigEndian = b.Order() == binary.BigEndian
	for id := btf.TypeID(1); int(id) < n; id++ {
		if t := b.Type(id); len(t.Name()) > 0 {
			d.add(id, string(t.Name()))
		}
	}
	for i := range d.roots {
		if err := d.define(i); err != nil {
			return d.defs, err
		}
	}
	for id := btf.TypeID(1); int(id) < n; id++ {
		if d.index[id] < 0 && d.in[id] == 0 { // anonymous, and not part of a definition
			if err := d.define(d.add(id, "")); err != nil {
				return d.defs, err
			}
		}
	}
	return d.defs, nil
}

// add adds a definition without types and returns its number.
func (d *definer) add(root btf.TypeID, name string) int {
	d.index[root] = len(d.roots)
	d.roots = append(d.roots, root)
	d.defs.list = append(d.defs.list, definition{slot: slotID{name, d.ordinals[name]}})
	d.ordinals[name]++
	return d.index[root]
}

// define collects the types of a definition.
func (d *definer) define(i int) error {
	root := d.roots[i]
	ids := []btf.TypeID{root}
	d.local[root], d.in[root] = 0, root
	ref := func(id btf.TypeID) int {
		switch {
		case id == 0:
			return canonical.Void
		case d.in[id] == root:
			return d.local[id]
		case d.index[id] >= 0:
			return slotRef(d.index[id])
		}
		d.local[id], d.in[id] = len(ids), root
		ids = append(ids, id)
		return len(ids) - 1
	}
	types := make([]canonical.Type, 0, 1)
	for k := 0; k < len(ids); k++ {
		t := d.btf.Type(ids[k])
		if !inArchive(t.Kind()) {
			return fmt.Errorf("types: type %d is %s, which minimized BTF does not have", t.ID, t.Kind())
		}
		types = append(types, canonical.Read(&t, ref))
	}
	types[0].Name = "" // the slot has it
	d.defs.list[i].types = types
	return nil
}

// newPool builds the pool of distinct BTFs. It changes their definitions.
func newPool(ctx context.Context, btfs []definitions) (*pool, error) {
	index := make(map[slotID]int)
	for _, defs := range btfs {
		for _, d := range defs.list {
			index[d.slot] = 0
		}
	}
	ids := slices.SortedFunc(maps.Keys(index), func(a, b slotID) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.ordinal, b.ordinal))
	})
	b := poolBuilder{pool: pool{slots: make([]slot, len(ids))}, shapes: make(map[string][]canonical.Type), variants: make(map[string]int32)}
	for i, id := range ids {
		index[id] = i
		b.slots[i].name = id.name
	}
	var layouts [][]int32 // the variants of each layout
	for _, defs := range btfs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		variants := b.emptyLayout()
		for _, d := range defs.list {
			for _, t := range d.types {
				for i, r := range t.Refs {
					if r < canonical.Void {
						t.Refs[i] = slotRef(index[defs.list[refSlot(r)].slot])
					}
				}
			}
			s := index[d.slot]
			variants[s] = b.variant(s, d.types)
		}
		b.layouts = append(b.layouts, b.layout(layouts, variants))
		b.layouts[len(layouts)].bigEndian = defs.bigEndian
		layouts = append(layouts, variants)
	}
	return &b.pool, nil
}

// poolBuilder finds the shapes and variants that a pool has already, by slot and
// content.
type poolBuilder struct {
	pool
	shapes   map[string][]canonical.Type
	variants map[string]int32
	key      []byte
	numbers  []uint64
}

// variant returns the number of a definition in its slot, and adds it if it is new.
func (b *poolBuilder) variant(slot int, types []canonical.Type) int32 {
	key, numbers := binary.AppendUvarint(b.key[:0], uint64(slot)), b.numbers[:0]
	for i := range types {
		t := &types[i]
		eachNumber(t, func(x uint64, _ bool) uint64 {
			numbers = append(numbers, x)
			return 0
		})
		key = t.AppendContent(key)
		for _, r := range t.Refs {
			key = binary.AppendVarint(key, int64(r))
		}
	}
	shape, ok := b.shapes[string(key)]
	if !ok {
		shape = types
		b.shapes[string(key)] = shape
	}
	for _, x := range numbers {
		key = binary.AppendUvarint(key, x)
	}
	b.key, b.numbers = key, numbers
	at, ok := b.variants[string(key)]
	if !ok {
		s := &b.slots[slot]
		at = int32(len(s.variants))
		b.variants[string(key)] = at
		s.variants = append(s.variants, variant{shape, slices.Clone(numbers)})
	}
	return at
}

// maxParents is how many layouts before a layout, and how many variants before a
// variant, the writer compares with it. That keeps the time of Write linear.
const (
	maxParentLayouts  = 512
	maxParentVariants = 64
)

// layout returns the layout with the given variants. Its parent is the earlier layout
// that differs in the fewest slots.
func (b *poolBuilder) layout(earlier [][]int32, variants []int32) layout {
	parent, from := int32(-1), b.emptyLayout()
	fewest := differences(from, variants, len(variants)+1)
	for i := len(earlier) - 1; i >= max(0, len(earlier)-maxParentLayouts); i-- {
		if n := differences(earlier[i], variants, fewest); n < fewest {
			parent, from, fewest = int32(i), earlier[i], n
		}
	}
	l := layout{parent: parent}
	for s, v := range variants {
		if v != from[s] {
			l.changes = append(l.changes, change{int32(s), v})
		}
	}
	return l
}

// differences counts the slots that differ, but not beyond limit.
func differences(a, b []int32, limit int) int {
	n := 0
	for i := range a {
		if a[i] != b[i] {
			if n++; n >= limit {
				break
			}
		}
	}
	return n
}
