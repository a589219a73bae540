// SPDX-License-Identifier: Apache-2.0

package minimize

import (
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/core"
)

// Kept types are exact: they refer to the same types as in the kernel, including
// typedefs and modifiers. Structs and unions behind exact pointers become forward
// declarations unless they have a node.

// addKept marks a type, members or an enumerator that a pattern names.
func (m *marks) addKept(kept *core.Kept) {
	if len(kept.Path) == 0 {
		m.keepWhole(kept.BTF, kept.Type)
		return
	}
	for _, nd := range kept.Path {
		n := m.nodes[m.node(kept.BTF.Type(nd.Type))]
		m.makeExact(n)
		m.need(n, nd.Idx)
	}
	if last := kept.Path[len(kept.Path)-1]; last.What == core.NeedMember {
		t := kept.BTF.Type(last.Type)
		m.keepWhole(t.BTF(), t.Member(last.Idx).Type)
	}
}

// makeExact marks the needed parts of n as exact.
func (m *marks) makeExact(n *node) {
	if !n.exact {
		n.exact = true
		m.grow(n)
	}
}

// keepWhole marks a type with all its members and everything that it contains by value.
func (m *marks) keepWhole(b *btf.BTF, id btf.TypeID) {
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
		add := func(id btf.TypeID) { todo = append(todo, nodeKey{t.BTF(), id}) }
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
		case k == btf.KindTypedef, k.IsMod():
			add(t.Ref())
		case k != btf.KindPtr:
			for id := range t.Refs() {
				add(id)
			}
		}
	}
}

// expandExact adds nodes for everything that an exact n refers to. Members that
// only relocations need are exact in their typedefs and modifiers alone.
func (m *marks) expandExact(n *node) {
	t := &n.t
	switch k := t.Kind(); {
	case k.IsComposite():
		for _, i := range n.idx {
			id := t.Member(i).Type
			m.behind(t, id)
			u := t.BTF().Type(id)
			if k := u.Kind(); k.IsMod() || k == btf.KindTypedef {
				m.makeExact(m.nodes[m.node(u)])
			}
		}
	case k == btf.KindPtr, k == btf.KindTypedef, k.IsMod():
		m.mention(n, t.Ref())
	default:
		for id := range t.Refs() {
			m.behind(t, id)
			m.mention(n, id)
		}
	}
}

// mention adds a node for a type that n refers to, or leaves a struct or union to a
// forward declaration. If one of several types of a name has a node, all have one, so
// that copies stay equal.
func (m *marks) mention(n *node, id btf.TypeID) {
	u := n.t.BTF().Type(id)
	if m.tooDeep(u.BTF(), id) {
		return
	}
	switch k := u.Kind(); {
	case !k.IsComposite() && !k.IsAnyEnum():
		m.makeExact(m.nodes[m.node(u)])
	case len(u.Name()) == 0:
		m.keepWhole(u.BTF(), u.ID)
	case k.IsComposite():
		key := nameKey{k, string(u.Name())}
		if m.names[key] == nil && m.extra == extraNone {
			m.waiting[key] = append(m.waiting[key], n)
			return
		}
		fallthrough
	default:
		m.node(u)
	}
}

// forward returns a forward declaration of a struct or union without a node.
func (g *graph) forward(t btf.Type) int {
	g.types = append(g.types, &canonical.Type{Kind: btf.KindFwd, Flag: t.Kind() == btf.KindUnion, Name: g.name(&t, t.NameOff)})
	return len(g.types) - 1
}
