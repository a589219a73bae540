// SPDX-License-Identifier: Apache-2.0

package minimize

import (
	"fmt"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/canon"
	"github.com/btfgen/btfgen/internal/engine"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

// graph is the output under construction.
type graph struct {
	m        *marks
	types    []*canon.Type
	wanted   func(string) bool // names that relocations ask for
	intNames bool              // the kernel's names of integers count
	ptrSize  uint32
	pad      Padding
	filler   int             // index of the filler's element type, or void
	names    int             // bytes of all names
	forwards map[nodeKey]int // output types of what is only mentioned
}

func newGraph(m *marks, set *engine.Set, ptrSize uint32, pad Padding) *graph {
	return &graph{
		m: m, types: make([]*canon.Type, len(m.nodes)), wanted: set.HasName, ptrSize: ptrSize, pad: pad, filler: canon.Void,
		// type_matches compares the names of integers. Another name could
		// make a candidate match that does not, so that all are kept.
		intNames: set.Asks(engine.KindTypeMatches),
		forwards: make(map[nodeKey]int),
	}
}

// lowerAll builds the output types, one for each node and at the same index. The
// error is a [limits.Exceeded] or that of the context of the marks.
func (g *graph) lowerAll() error {
	hasPtr := false
	for i, n := range g.m.nodes {
		if g.names > limits.OutputNames {
			return &limits.Exceeded{Max: limits.OutputNames, What: "bytes of names needed"}
		}
		if !g.m.goesOn(1 + len(n.idx)) {
			return g.m.fail()
		}
		if k := n.t.Kind(); k != btfenc.KindVoid {
			g.types[i] = g.lower(n)
			hasPtr = hasPtr || k == btfenc.KindPtr
		}
	}
	if hasPtr && g.ptrSize == 4 && !g.wanted("long") {
		// libbpf on a 64-bit host takes the size of pointers from here.
		g.types = append(g.types, &canon.Type{Kind: btfenc.KindInt, Name: "long", Size: 4, Fields: []canon.Field{{Lo: btfenc.IntSigned<<24 | 32}}})
	}
	return nil
}

// keepOrder puts types of one name in the order that they have in the kernel.
func (g *graph) keepOrder(k *engine.Kernel) {
	before := make(map[*rawbtf.BTF]int)
	n := 0
	for _, v := range k.Views() {
		before[v] = n
		n += v.NumTypes()
	}
	for i, n := range g.m.nodes {
		if g.types[i] != nil {
			g.types[i].Order = before[n.t.BTF()] + int(n.t.ID)
		}
	}
}

// name returns the string at an offset.
func (g *graph) name(t *rawbtf.Type, off uint32) string {
	s := string(t.BTF().Name(off))
	g.names += len(s)
	return s
}

// ref returns the output type of what n refers to by id.
func (g *graph) ref(n *node, id btfenc.TypeID) int {
	u := standsFor(&n.t, id)
	if n.exact {
		u = n.t.BTF().Type(id)
	}
	if u.Kind() == btfenc.KindVoid {
		return canon.Void
	}
	if _, ok := g.m.index[nodeKey{u.BTF(), u.ID}]; !ok {
		return g.forward(u)
	}
	return g.m.node(u)
}

func (g *graph) lower(n *node) *canon.Type {
	t := &n.t
	o := &canon.Type{Kind: t.Kind(), Flag: t.KindFlag(), Name: g.name(t, t.NameOff)}
	if o.Kind.Shape().Third == btfenc.Size {
		o.Size = t.Size()
	}
	switch o.Kind {
	case btfenc.KindInt:
		if !n.name && !n.exact && !g.intNames {
			o.Name = g.intName(t)
		}
		o.Fields = []canon.Field{{Lo: t.IntData()}}
	case btfenc.KindPtr:
		ref := canon.Void
		if n.pointee || n.exact {
			ref = g.ref(n, t.Ref())
		}
		o.Refs = []int{ref}
	case btfenc.KindTypedef, btfenc.KindVolatile, btfenc.KindConst, btfenc.KindRestrict, btfenc.KindTypeTag:
		o.Refs = []int{g.ref(n, t.Ref())}
	case btfenc.KindFunc, btfenc.KindVar:
		o.Fields, o.Refs = []canon.Field{{Lo: t.Linkage()}}, []int{g.ref(n, t.Ref())}
	case btfenc.KindArray:
		a, index := t.Array(), canon.Void
		if n.index || n.exact {
			index = g.ref(n, a.Index)
		}
		o.Fields, o.Refs = []canon.Field{{Lo: a.Nelems}}, []int{g.ref(n, a.Elem), index}
	case btfenc.KindStruct, btfenc.KindUnion:
		g.members(n, o)
	case btfenc.KindEnum, btfenc.KindEnum64:
		for _, i := range n.idx {
			e := t.Enumerator(i)
			o.Fields = append(o.Fields, canon.Field{Name: g.name(t, e.NameOff), Lo: uint32(e.Value), Hi: uint32(e.Value >> 32)})
		}
	case btfenc.KindFuncProto:
		o.Refs = []int{g.ref(n, t.Ref())}
		for i := range t.Vlen() {
			p, f := t.Param(i), canon.Field{}
			if n.exact {
				f.Name = g.name(t, p.NameOff)
			}
			o.Fields, o.Refs = append(o.Fields, f), append(o.Refs, g.ref(n, p.Type))
		}
	}
	return o
}

// members adds the members of n. The kind flag says that some are bitfields,
// so it goes when none of those is left.
func (g *graph) members(n *node, o *canon.Type) {
	t := &n.t
	bitfields := false
	for _, i := range n.idx {
		bitfields = bitfields || t.Member(i).BitSize > 0
	}
	o.Flag = bitfields
	o.Fields, o.Refs = make([]canon.Field, 0, len(n.idx)), make([]int, 0, len(n.idx))
	for _, i := range n.idx {
		m := t.Member(i)
		o.Fields = append(o.Fields, canon.Field{Name: g.name(t, m.NameOff), Lo: m.BitSize<<24 | m.BitOffset})
		o.Refs = append(o.Refs, g.ref(n, m.Type))
	}
	if g.pad == PadExplicit && o.Kind == btfenc.KindStruct {
		g.addPadding(n, o)
	}
}

// intName returns C's name of an integer, so that spellings do not tell equal
// ones apart. It is empty where there is none, or where a relocation asks for
// that name and the type would pass for what it wants.
func (g *graph) intName(t *rawbtf.Type) string {
	enc := t.IntEncoding()
	var s string
	switch t.Size() {
	case 1:
		s = "char"
	case 2:
		s = "short"
	case 4:
		s = "int"
	case 8:
		if s = "long"; g.ptrSize == 4 {
			s = "long long"
		}
	case 16:
		s = "__int128"
	default:
		return ""
	}
	switch {
	case enc&btfenc.IntBool != 0:
		s = "_Bool"
	case enc&btfenc.IntSigned == 0:
		s = "unsigned " + s
	case t.Size() == 1:
		s = "signed char"
	}
	if g.wanted(s) {
		return ""
	}
	return s
}

// addPadding fills the gaps between members with named arrays of bytes. An
// array without elements stays the last member.
func (g *graph) addPadding(n *node, o *canon.Type) {
	var words []canon.Field
	var refs []int
	at := uint32(0) // end of what is covered, bytes
	gap := func(to uint32) {
		if to > at && to-at <= o.Size {
			words = append(words, canon.Field{Name: fmt.Sprintf("__pad%d", at), Lo: at * 8})
			refs = append(refs, g.bytes(to-at))
		}
	}
	flexible := false
	for k, i := range n.idx {
		m := n.t.Member(i)
		if m.BitSize == 0 {
			gap(m.BitOffset / 8)
		} else if m.BitOffset/8 > at {
			gap(m.BitOffset / 8)
		}
		words, refs = append(words, o.Fields[k]), append(refs, o.Refs[k])
		size, _ := n.t.BTF().SizeOf(m.Type)
		end := m.BitOffset/8 + size
		if m.BitSize > 0 {
			end = (m.BitOffset + m.BitSize + 7) / 8
		}
		at = max(at, end)
		flexible = size == 0
	}
	if !flexible {
		gap(o.Size)
	}
	o.Fields, o.Refs = words, refs
}

// bytes returns the output type of an array of n bytes.
func (g *graph) bytes(n uint32) int {
	if g.filler == canon.Void {
		g.types = append(g.types, &canon.Type{Kind: btfenc.KindInt, Name: "unsigned char", Size: 1, Fields: []canon.Field{{Lo: 8}}})
		g.filler = len(g.types) - 1
	}
	g.types = append(g.types, &canon.Type{Kind: btfenc.KindArray, Fields: []canon.Field{{Lo: n}}, Refs: []int{g.filler, g.filler}})
	return len(g.types) - 1
}
