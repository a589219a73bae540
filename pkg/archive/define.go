// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
)

// slot is a place that a definition takes in a layout. Types refer to each
// other by slot, so that a definition stays the same when what it refers to
// changes. Of types that share a name in one BTF the first has ordinal 0, the
// next 1. A type that no named one leads to has an empty name.
type slot struct {
	name    string
	ordinal int
}

func compareSlots(a, b slot) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.ordinal, b.ordinal))
}

// definition is a type and the anonymous types that belong to it: nodes[0] is
// the type itself, the others follow in the order of their first reference.
type definition struct {
	slot  slot
	nodes []node
}

// node is one type of a definition. Its fields are those of a canonical.Type.
type node struct {
	kind   btf.Kind
	flag   bool
	size   uint32
	fields []canonical.Field
	refs   []ref
}

// ref is void, a node of the same definition, or another slot.
type ref struct {
	node int   // refVoid and refSlot aside, a position in the definition
	slot *slot // if node is refSlot
}

const (
	refVoid = -1
	refSlot = -2
)

// definer cuts one BTF into definitions.
type definer struct {
	btf   *btf.BTF
	slots []*slot      // by type ID; nil for anonymous types that belong to others
	local []int        // by type ID: the node of the definition that stamp names
	stamp []btf.TypeID // by type ID: root of the last definition with the type
}

// define cuts a minimized BTF into definitions, sorted by slot. It does not
// check that the BTF is canonical.
func define(data []byte) ([]definition, binary.ByteOrder, error) {
	b, err := btf.New(data, nil)
	if err != nil {
		return nil, nil, err
	}
	n := b.NumTypes()
	d := &definer{btf: b, slots: make([]*slot, n), local: make([]int, n), stamp: make([]btf.TypeID, n)}
	ordinals := make(map[string]int)
	var roots []btf.TypeID
	root := func(id btf.TypeID, name string) {
		d.slots[id] = &slot{name, ordinals[name]}
		ordinals[name]++
		roots = append(roots, id)
	}
	for id := btf.TypeID(1); int(id) < n; id++ {
		if t := b.Type(id); len(t.Name()) > 0 {
			root(id, string(t.Name()))
		}
	}
	var defs []definition
	next := btf.TypeID(1) // the first that may be anonymous and unreached
	for i := 0; ; i++ {
		for ; i == len(roots) && int(next) < n; next++ {
			if d.slots[next] == nil && d.stamp[next] == 0 {
				root(next, "")
			}
		}
		if i == len(roots) {
			break
		}
		def, err := d.definition(roots[i])
		if err != nil {
			return nil, nil, err
		}
		defs = append(defs, def)
	}
	slices.SortFunc(defs, func(a, b definition) int { return compareSlots(a.slot, b.slot) })
	return defs, b.Order(), nil
}

// definition collects a root and the anonymous types that it leads to.
func (d *definer) definition(root btf.TypeID) (definition, error) {
	def := definition{slot: *d.slots[root]}
	ids := []btf.TypeID{root}
	d.local[root], d.stamp[root] = 0, root
	refTo := func(id btf.TypeID) ref {
		switch {
		case id == 0:
			return ref{node: refVoid}
		case d.stamp[id] == root:
			return ref{node: d.local[id]}
		case d.slots[id] != nil:
			return ref{node: refSlot, slot: d.slots[id]}
		}
		d.local[id], d.stamp[id] = len(ids), root
		ids = append(ids, id)
		return ref{node: len(ids) - 1}
	}
	for i := 0; i < len(ids); i++ {
		n, err := d.node(d.btf.Type(ids[i]), refTo)
		if err != nil {
			return def, err
		}
		def.nodes = append(def.nodes, n)
	}
	return def, nil
}

func (d *definer) node(t btf.Type, refTo func(btf.TypeID) ref) (node, error) {
	n := node{kind: t.Kind(), flag: t.KindFlag(), size: t.Size()}
	name := func(off uint32) string { return string(d.btf.Name(off)) }
	switch n.kind {
	case btf.KindInt:
		n.fields = []canonical.Field{{Lo: t.IntData()}}
	case btf.KindPtr, btf.KindTypedef, btf.KindVolatile, btf.KindConst, btf.KindRestrict, btf.KindTypeTag:
		n.size, n.refs = 0, []ref{refTo(t.Ref())}
	case btf.KindFunc, btf.KindVar:
		n.size, n.fields, n.refs = 0, []canonical.Field{{Lo: t.Linkage()}}, []ref{refTo(t.Ref())}
	case btf.KindFwd, btf.KindFloat:
	case btf.KindArray:
		a := t.Array()
		n.fields, n.refs = []canonical.Field{{Lo: a.Nelems}}, []ref{refTo(a.Elem), refTo(a.Index)}
	case btf.KindStruct, btf.KindUnion:
		for i := range t.Vlen() {
			m := t.Member(i)
			n.fields = append(n.fields, canonical.Field{Name: name(m.NameOff), Lo: m.BitSize<<24 | m.BitOffset})
			n.refs = append(n.refs, refTo(m.Type))
		}
	case btf.KindEnum, btf.KindEnum64:
		for i := range t.Vlen() {
			e := t.Enumerator(i)
			n.fields = append(n.fields, canonical.Field{Name: name(e.NameOff), Lo: uint32(e.Value), Hi: uint32(e.Value >> 32)})
		}
	case btf.KindFuncProto:
		n.size, n.refs = 0, []ref{refTo(t.Ref())}
		for i := range t.Vlen() {
			p := t.Param(i)
			n.fields = append(n.fields, canonical.Field{Name: name(p.NameOff)})
			n.refs = append(n.refs, refTo(p.Type))
		}
	default:
		return n, fmt.Errorf("types: type %d is %s, which minimized BTF does not have", t.ID, n.kind)
	}
	return n, nil
}
