// SPDX-License-Identifier: Apache-2.0

package minimize

import (
	"context"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/relo"
)

// nodeKey is a type of the kernel, in the view that it belongs to.
type nodeKey struct {
	btf *btf.BTF
	id  btf.TypeID
}

// node is a needed type, and the parts of it that are needed.
type node struct {
	t       btf.Type
	idx     []uint32 // members or enumerators that are needed, ascending
	pointee bool     // the target of a pointer is needed
	index   bool     // the index type of an array is needed
	root    bool     // root of a relocation: an integer keeps its name, a typedef its type
	copies  bool     // a relocation uses its type ID: equal ones are not merged
	exact   bool     // emitted as in the kernel, see keep.go
	whole   bool     // all members are needed
	hidden  bool     // libbpf must not find it by its name

	queued bool // the node is in marks.grown
}

// marks is the set of types needed. Nodes are in the order of their first mark.
type marks struct {
	anonymous bool // none of several anonymous members may be dropped
	extra     extra
	index     map[nodeKey]int
	nodes     []*node
	names     map[nameKey][]int   // structs and unions, as places in nodes
	copied    []nameKey           // those that several types have
	waiting   map[nameKey][]*node // exact ones that name a struct or union which has no node yet

	grown   []*node         // their needs have grown since they were expanded
	members int             // needed, of all types; enumerators count
	hidden  bool            // a node is
	dropped map[string]bool // same map as Minimizer.dropped
	meter   *limits.Meter
	err     error // a limit that is exceeded
}

type nameKey struct {
	kind btf.Kind
	name string
}

// extra selects parts to keep on which no match depends.
type extra int

const (
	extraNone     extra = iota
	extraPointees       // the types behind pointers, without members
	extraMembers        // all members and enumerators of needed types
)

// newMarks returns an empty set of marks. anonymous says that a relocation is
// of kind type_matches: cilium/ebpf compares the last anonymous member of a
// struct with the local one, so the last must stay the last.
func newMarks(ctx context.Context, anonymous bool, k extra) *marks {
	return &marks{
		anonymous: anonymous, extra: k, index: make(map[nodeKey]int), names: make(map[nameKey][]int), waiting: make(map[nameKey][]*node),
		meter: limits.NewMeter(ctx, limits.Marks, "steps to find what is needed"),
	}
}

// goesOn counts steps and reports whether marking goes on.
func (m *marks) goesOn(steps int) bool { return m.meter.Step(steps) && m.err == nil }

// fail returns the error that ends marking, or nil.
func (m *marks) fail() error {
	if m.err != nil {
		return m.err
	}
	return m.meter.Err()
}

// node returns the index of the node of a type, which it adds if need be.
func (m *marks) node(t btf.Type) int {
	k := nodeKey{t.BTF(), t.ID}
	i, ok := m.index[k]
	if ok {
		return i
	}
	if i = len(m.nodes); i == limits.Types {
		m.err = &limits.Exceeded{Max: limits.Types, What: "types needed"}
		return 0
	}
	if kind := t.Kind(); kind == btf.KindDeclTag || kind == btf.KindDatasec {
		m.err = fmt.Errorf("type %d: a %s in the place of a type", t.ID, kind)
	}
	m.index[k] = i
	n := &node{t: t}
	m.nodes = append(m.nodes, n)
	if kind := t.Kind(); kind.IsComposite() && t.NameOff != 0 {
		key := nameKey{kind, string(t.Name())}
		m.names[key] = append(m.names[key], i)
		switch len(m.names[key]) {
		case 1:
			for _, w := range m.waiting[key] {
				m.grow(w)
			}
			delete(m.waiting, key)
		case 2:
			m.copied = append(m.copied, key)
		}
	}
	m.grow(n)
	return i
}

// grow notes that more of n is needed than before.
func (m *marks) grow(n *node) {
	if !n.queued {
		n.queued = true
		m.grown = append(m.grown, n)
	}
}

// behind returns the node of the type of a member or a pointer, without modifiers
// and typedefs.
func (m *marks) behind(t *btf.Type, id btf.TypeID) int {
	if m.tooDeep(t.BTF(), id) {
		return m.node(btf.Type{})
	}
	return m.node(standsFor(t, id))
}

// tooDeep notes and reports whether a type is behind more modifiers than loaders follow.
// Without these, the output would have a size that the kernel's type has not.
func (m *marks) tooDeep(b *btf.BTF, id btf.TypeID) bool {
	_, err := b.SizeOf(id)
	if err == btf.ErrDepth {
		m.err = fmt.Errorf("type %d: more than %d typedefs, modifiers and arrays in a row", id, limits.Modifiers)
	}
	return err == btf.ErrDepth
}

// standsFor returns type id of t's BTF without modifiers and typedefs.
func standsFor(t *btf.Type, id btf.TypeID) btf.Type {
	u, _ := t.BTF().SkipMods(id)
	return u
}

// need adds i to the members or enumerators of n and reports whether it is new.
func (m *marks) need(n *node, i uint32) bool {
	at, ok := slices.BinarySearch(n.idx, i)
	if ok || !m.goesOn(1+(len(n.idx)-at)/64) {
		return false
	}
	if m.members++; m.members > limits.Members {
		m.err = &limits.Exceeded{Max: limits.Members, What: "members needed"}
		return false
	}
	n.idx = slices.Insert(n.idx, at, i)
	m.grow(n)
	return true
}

// add marks the needs of one match.
func (m *marks) add(match *core.Found) {
	if match.Hidden && len(m.dropped) > 0 {
		if t := match.BTF.Type(match.Type); m.dropped[btf.Agreed(string(t.Name()))] {
			m.hidden = true
			return
		}
	}
	for _, nd := range match.Needs {
		if !m.goesOn(1) {
			return
		}
		n := m.nodes[m.node(match.BTF.Type(nd.Type))]
		switch nd.What {
		case core.NeedMember, core.NeedEnumerator:
			m.need(n, nd.Idx)
		case core.NeedPointee:
			n.pointee = true
		case core.NeedIndex:
			n.index = true
		}
	}
	root := m.nodes[m.node(match.BTF.Type(match.Type))]
	root.root = true
	if match.Hidden {
		root.hidden, m.hidden = true, true
	} else if match.HasKind(relo.TargetTypeID) {
		root.copies = true
	}
}

// settle adds the types that marked ones refer to, and the marks that follow from
// others, until there are no more. The error is a [limits.Exceeded], the context's,
// or names a type that cannot be emitted.
func (m *marks) settle() error {
	for len(m.grown) > 0 {
		for n := len(m.grown); n > 0; n = len(m.grown) {
			g := m.grown[n-1]
			m.grown, g.queued = m.grown[:n-1], false
			if m.expand(g); !m.goesOn(1 + len(g.idx)) {
				return m.fail()
			}
		}
		for _, key := range m.copied {
			if m.unify(m.names[key], 0); !m.goesOn(1) {
				return m.fail()
			}
		}
	}
	return m.fail()
}

// expand adds nodes for everything that n refers to.
func (m *marks) expand(n *node) {
	t := &n.t
	if k := t.Kind(); m.extra == extraMembers && (k.IsComposite() || k.IsAnyEnum()) {
		for i := range t.Vlen() {
			m.need(n, i)
		}
	}
	switch k := t.Kind(); k {
	case btf.KindStruct, btf.KindUnion:
		m.needEnd(n)
		if m.anonymous {
			m.needAnonymous(n)
		}
		for _, i := range n.idx {
			mem := t.Member(i)
			m.behind(t, mem.Type)
			// cilium/ebpf takes a member of such an integer for a bitfield unless a typedef is in front of the integer or
			// the struct has a kind flag. The output has neither.
			if u := standsFor(t, mem.Type); core.BitfieldInt(u) && (u.ID != mem.Type || t.KindFlag()) {
				m.err = fmt.Errorf("type %d: an integer whose bits are not those of its size, behind a typedef or in a struct with a kind flag", u.ID)
			}
		}
	case btf.KindPtr:
		if n.pointee = n.pointee || m.extra == extraPointees; n.pointee {
			m.behind(t, t.Ref())
		}
	case btf.KindTypedef:
		if n.root {
			m.behind(t, t.ID)
		}
	case btf.KindArray:
		a := t.Array()
		m.behind(t, a.Elem)
		if n.index {
			m.behind(t, a.Index)
		}
	case btf.KindFunc, btf.KindFuncProto: // libbpf reads no BTF with a function that has no prototype
		for id := range t.Refs() {
			m.behind(t, id)
		}
	}
	if n.exact {
		m.expandExact(n)
	}
}

// needEnd makes sure that an array without elements that is not the last
// member does not become the last, which would make it a flexible one.
func (m *marks) needEnd(n *node) {
	if len(n.idx) == 0 {
		return
	}
	last := n.idx[len(n.idx)-1]
	if end := n.t.Vlen() - 1; last != end {
		t := standsFor(&n.t, n.t.Member(last).Type)
		if t.Kind() == btf.KindArray && t.Array().Nelems == 0 {
			m.need(n, end)
		}
	}
}

// needAnonymous adds all anonymous members if there is one.
func (m *marks) needAnonymous(n *node) {
	isAnon := func(i uint32) bool { return n.t.BTF().NameIs(n.t.Member(i).NameOff, "") }
	if !slices.ContainsFunc(n.idx, isAnon) {
		return
	}
	for i := range n.t.Vlen() {
		if isAnon(i) {
			m.need(n, i)
		}
	}
}

// memberKey identifies a member among copies of one struct.
type memberKey struct {
	name      string
	bitOffset uint32
}

func keyOf(t *btf.Type, i uint32) memberKey {
	mem := t.Member(i)
	return memberKey{string(t.BTF().Name(mem.NameOff)), mem.BitOffset}
}

// maxDepth is how deep anonymous members nest, as libbpf's
// BPF_CORE_SPEC_MAX_LEN bounds it.
const maxDepth = 64

// unify gives copies of one struct or union the same marks, also in anonymous ones
// inside. It causes no new matches, because the kernel's types have these members.
// depth bounds anonymous structs that contain themselves.
func (m *marks) unify(nodes []int, depth int) {
	want := make(map[memberKey]bool)
	exact, whole := false, false
	for _, ni := range nodes {
		n := m.nodes[ni]
		exact, whole = exact || n.exact, whole || n.whole
		for _, i := range n.idx {
			want[keyOf(&n.t, i)] = true
		}
	}
	if len(want) == 0 || depth > maxDepth {
		return
	}
	inner := make(map[memberKey][]int)
	for _, ni := range nodes {
		n := m.nodes[ni]
		if whole {
			m.keepWhole(n.t.BTF(), n.t.ID)
		} else if exact {
			m.makeExact(n)
		}
		if !m.goesOn(int(n.t.Vlen())) {
			return
		}
		for i := range n.t.Vlen() {
			k := keyOf(&n.t, i)
			if !want[k] {
				continue
			}
			m.need(n, i)
			if k.name != "" {
				continue
			}
			if in := m.behind(&n.t, n.t.Member(i).Type); m.nodes[in].t.Kind().IsComposite() {
				inner[k] = append(inner[k], in)
			}
		}
	}
	for _, l := range inner {
		slices.Sort(l)
		if l = slices.Compact(l); len(l) > 1 {
			m.unify(l, depth+1)
		}
	}
}
