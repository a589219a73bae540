// SPDX-License-Identifier: Apache-2.0

package minimize

import (
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relo"
)

// graph is the output under construction.
type graph struct {
	m        *marks
	types    []*canonical.Type
	wanted   func(string) bool // names in relocations
	intNames bool              // the kernel's names of integers count
	ptrSize  uint32
	names    int // bytes of all names
}

func newGraph(m *marks, set *core.Set, ptrSize uint32) *graph {
	return &graph{
		m: m, types: make([]*canonical.Type, len(m.nodes)), wanted: set.HasName, ptrSize: ptrSize,
		// type_matches compares the names of integers. Another name could
		// make a candidate match that does not, so that all are kept.
		intNames: set.HasKind(relo.TypeMatches),
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
		if k := n.t.Kind(); k != btf.KindVoid {
			if g.types[i] = g.lower(n); n.copies {
				g.types[i].Copies = 1
			}
			hasPtr = hasPtr || k == btf.KindPtr
		}
	}
	if hasPtr {
		g.addLong()
	}
	return nil
}

// addLong adds an integer from which libbpf takes the size of pointers, unless it takes the right one from elsewhere: it
// is that of the first long, or of the host's pointers without one. Types are sorted by name.
func (g *graph) addLong() {
	names := slices.Sorted(slices.Values(btf.LongNames))
	wrong := slices.ContainsFunc(g.types, func(t *canonical.Type) bool {
		return t != nil && t.Kind == btf.KindInt && t.Size != g.ptrSize && (t.Size == 4 || t.Size == 8) && slices.Contains(names, t.Name)
	})
	switch {
	case wrong:
	case g.ptrSize == 4:
		names = append([]string{"long"}, names...)
	default:
		return
	}
	if i := slices.IndexFunc(names, func(s string) bool { return !g.wanted(s) }); i >= 0 {
		g.types = append(g.types, &canonical.Type{Kind: btf.KindInt, Name: names[i], Size: g.ptrSize, Fields: []canonical.Field{{Lo: btf.IntSigned<<24 | g.ptrSize*8}}})
	}
}

// preserveOrder puts types of one name in the order that they have in the kernel. Types whose names differ only in a flavor
// lose it, since the output is sorted by name.
func (g *graph) preserveOrder(k *core.Target) {
	before := make(map[*btf.BTF]int)
	n := 0
	for _, v := range k.Views() {
		before[v] = n
		n += v.NumTypes()
	}
	for i, n := range g.m.nodes {
		if t := g.types[i]; t != nil {
			t.Order = before[n.t.BTF()] + int(n.t.ID)
			if name := btf.Agreed(t.Name); !n.exact && g.wanted(name) {
				t.Name = name
			}
		}
	}
}

// hide makes types of modules unnamed that libbpf does not look at, because vmlinux has the type, and adds a typedef
// with the name. cilium/ebpf takes typedefs for candidates. libbpf and aya do not, if the local type is none.
func (g *graph) hide() {
	for i, n := range g.m.nodes {
		if k := n.t.Kind(); !n.hidden || n.exact || !k.IsComposite() && !k.IsAnyEnum() {
			continue
		}
		t := g.types[i]
		g.types = append(g.types, &canonical.Type{Kind: btf.KindTypedef, Name: t.Name, Refs: []int{i}, Order: t.Order})
		t.Name = ""
	}
}

// name returns the string at an offset.
func (g *graph) name(t *btf.Type, off uint32) string {
	s := string(t.BTF().Name(off))
	g.names += len(s)
	return s
}

// ref returns the output type of what n refers to by id.
func (g *graph) ref(n *node, id btf.TypeID) int {
	u := standsFor(&n.t, id)
	if n.exact {
		u = n.t.BTF().Type(id)
	}
	if u.Kind() == btf.KindVoid {
		return canonical.Void
	}
	if _, ok := g.m.index[nodeKey{u.BTF(), u.ID}]; !ok {
		return g.forward(u)
	}
	return g.m.node(u)
}

func (g *graph) lower(n *node) *canonical.Type {
	t := &n.t
	switch k := t.Kind(); {
	case k.IsComposite():
		return g.members(n)
	case k.IsAnyEnum():
		o := &canonical.Type{Kind: k, Flag: t.KindFlag(), Name: g.name(t, t.NameOff), Size: t.Size()}
		for _, i := range n.idx {
			e := t.Enumerator(i)
			o.Fields = append(o.Fields, canonical.Field{Name: g.name(t, e.NameOff), Lo: uint32(e.Value), Hi: uint32(e.Value >> 32)})
		}
		return o
	}
	refs := 0
	o := canonical.Read(t, func(id btf.TypeID) int {
		refs++
		unneeded := t.Kind() == btf.KindPtr && !n.pointee || t.Kind() == btf.KindArray && refs == 2 && !n.index
		if unneeded && !n.exact {
			return canonical.Void
		}
		return g.ref(n, id)
	})
	o.Copies = 0 // equal types are merged
	switch {
	case n.exact:
	case o.Kind == btf.KindInt && !n.root && !g.intNames:
		o.Name = g.intName(t)
	case o.Kind == btf.KindFuncProto:
		clear(o.Fields) // names of parameters
	}
	g.names += len(o.Name)
	for _, f := range o.Fields {
		g.names += len(f.Name)
	}
	return &o
}

// members returns a struct or union with the members that are needed. The kind flag
// says that some are bitfields, so it goes when none of those is left.
func (g *graph) members(n *node) *canonical.Type {
	t := &n.t
	o := &canonical.Type{
		Kind: t.Kind(), Name: g.name(t, t.NameOff), Size: t.Size(),
		Fields: make([]canonical.Field, 0, len(n.idx)), Refs: make([]int, 0, len(n.idx)),
	}
	for _, i := range n.idx {
		m := t.Member(i)
		o.Flag = o.Flag || m.BitSize > 0
		o.Fields = append(o.Fields, canonical.Field{Name: g.name(t, m.NameOff), Lo: m.BitSize<<24 | m.BitOffset})
		o.Refs = append(o.Refs, g.ref(n, m.Type))
	}
	return o
}

var intNames = map[uint32]string{1: "char", 2: "short", 4: "int", 8: "long", 16: "__int128"}

// intName returns C's name of an integer, which makes all spellings equal. It is
// empty if there is none, or if a relocation is about that name and could match.
func (g *graph) intName(t *btf.Type) string {
	enc := t.IntEncoding()
	s := intNames[t.Size()]
	switch {
	case s == "":
		return ""
	case s == "long" && g.ptrSize == 4:
		s = "long long"
	}
	switch {
	case enc&btf.IntBool != 0:
		s = "_Bool"
	case enc&btf.IntSigned == 0:
		s = "unsigned " + s
	case t.Size() == 1:
		s = "signed char"
	}
	if g.wanted(s) {
		return ""
	}
	return s
}
