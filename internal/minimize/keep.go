// SPDX-License-Identifier: Apache-2.0

package minimize

import (
	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/canon"
	"github.com/btfgen/btfgen/internal/engine"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

// Marks of what is kept. Such a type is exact: it refers to what it refers to in the
// kernel, typedefs, modifiers and all. Structs and unions that exact pointers lead to
// become forward declarations unless they have a node.

// addKept marks what a pattern names.
func (m *marks) addKept(kept *engine.Kept) {
	if len(kept.Path) == 0 {
		m.keepWhole(kept.BTF, kept.Type)
		return
	}
	for _, nd := range kept.Path {
		n := m.nodes[m.node(kept.BTF.Type(nd.Type))]
		m.makeExact(n)
		switch nd.What {
		case engine.NeedMember, engine.NeedEnumerator:
			m.need(n, nd.Idx)
		case engine.NeedPointee:
			n.pointee = true
		}
	}
	if last := kept.Path[len(kept.Path)-1]; last.What == engine.NeedMember {
		t := kept.BTF.Type(last.Type)
		m.keepWhole(t.BTF(), t.Member(last.Idx).Type)
	}
}

// makeExact has n emitted as the kernel has it, as far as it is needed.
func (m *marks) makeExact(n *node) {
	if !n.exact {
		n.exact = true
		m.grow(n)
	}
}

// keepWhole marks a type with all that it has, and all of that by value.
func (m *marks) keepWhole(b *rawbtf.BTF, id btfenc.TypeID) {
	todo := []nodeKey{{b, id}}
	for len(todo) > 0 && m.goesOn(1) {
		next := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		t := next.btf.Type(next.id)
		n := m.nodes[m.node(t)]
		if n.whole {
			continue
		}
		n.whole = true
		m.makeExact(n)
		add := func(id btfenc.TypeID) { todo = append(todo, nodeKey{t.BTF(), id}) }
		switch k := t.Kind(); {
		case k.IsComposite():
			for i := range t.Vlen() {
				m.need(n, i)
				add(t.Member(i).Type)
			}
		case k.IsAnyEnum():
			for i := range t.Vlen() {
				m.need(n, i)
			}
		case k == btfenc.KindTypedef, k.IsMod():
			add(t.Ref())
		default:
			eachPart(&t, add)
		}
	}
}

// eachPart calls f with what an array, a prototype, a function or a variable refers to.
func eachPart(t *rawbtf.Type, f func(btfenc.TypeID)) {
	switch k := t.Kind(); {
	case k == btfenc.KindArray:
		a := t.Array()
		f(a.Elem)
		f(a.Index)
	case k == btfenc.KindFuncProto:
		f(t.Ref())
		for i := range t.Vlen() {
			f(t.Param(i).Type)
		}
	case k.HasLinkage():
		f(t.Ref())
	}
}

// expandExact makes sure that all that an exact n refers to has a node, or waits for
// one. Members that are needed and not kept are as relocations need them, but for the
// typedefs and modifiers in front of them.
func (m *marks) expandExact(n *node) {
	t := &n.t
	switch k := t.Kind(); {
	case k.IsComposite():
		for _, i := range n.idx {
			id := t.Member(i).Type
			m.behind(t, id)
			u := t.BTF().Type(id)
			if k := u.Kind(); k.IsMod() || k == btfenc.KindTypedef {
				m.makeExact(m.nodes[m.node(u)])
			}
		}
	case k == btfenc.KindPtr, k == btfenc.KindTypedef, k.IsMod():
		m.mention(n, t.Ref())
	default:
		eachPart(t, func(id btfenc.TypeID) {
			m.behind(t, id)
			m.mention(n, id)
		})
	}
}

// mention makes sure that what n names can be named: by a node or, of structs and
// unions, by a forward declaration. Of several that share a name all have a node if one
// has, so that copies stay equal.
func (m *marks) mention(n *node, id btfenc.TypeID) {
	u := n.t.BTF().Type(id)
	if m.tooDeep(u.BTF(), id) {
		return
	}
	switch k := u.Kind(); {
	case !k.IsComposite() && !k.IsAnyEnum():
		m.makeExact(m.nodes[m.node(u)])
	case len(u.Name()) == 0: // nothing else could name it
		m.keepWhole(u.BTF(), u.ID)
	case k.IsComposite():
		key := nameKey{k, string(u.Name())}
		if m.names[key] == nil && m.keep == keepNothing {
			m.waiting[key] = append(m.waiting[key], n)
			return
		}
		fallthrough
	default:
		m.node(u)
	}
}

// forward returns the output type of a struct or union that is only mentioned.
func (g *graph) forward(t rawbtf.Type) int {
	key := nodeKey{t.BTF(), t.ID}
	i, ok := g.forwards[key]
	if !ok {
		i = len(g.types)
		g.forwards[key] = i
		g.types = append(g.types, &canon.Type{Kind: btfenc.KindFwd, Flag: t.Kind() == btfenc.KindUnion, Name: g.name(&t, t.NameOff)})
	}
	return i
}
