// SPDX-License-Identifier: Apache-2.0

package minimize

import (
	"context"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/engine"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

// nodeKey is a type of the kernel, in the view that it belongs to.
type nodeKey struct {
	btf *rawbtf.BTF
	id  btfenc.TypeID
}

// node is a type that is needed, and what of it.
type node struct {
	t       rawbtf.Type
	idx     []uint32 // members or enumerators that are needed, ascending
	pointee bool     // of a pointer: what it points to
	index   bool     // of an array: its index type
	name    bool     // of an int: its own name, which a relocation asks for
	copies  bool     // its type ID is asked for: equal ones are not merged
	value   bool     // of a typedef: what it stands for
	exact   bool     // to be emitted as the kernel has it, see keep.go
	whole   bool     // with all that it has

	queued bool        // in marks.grown
	within []*sameName // whose marks may follow from this one's
}

// marks is the set of types needed. Nodes are in the order of their first
// mark. It is used again, with its memory, for each kernel.
type marks struct {
	anonymous bool // of several anonymous members none may be dropped
	keep      keep
	index     map[nodeKey]int
	nodes     []*node
	names     map[nameKey]*sameName // structs and unions
	waiting   map[nameKey][]*node   // exact ones that name a struct or union which has no node yet
	deep      btfenc.TypeID         // a needed type behind more typedefs, modifiers and arrays than loaders follow, or 0

	grown   []*node     // of which more is needed than when they were expanded
	uneven  []*sameName // whose nodes may differ in their marks
	current *sameName   // which is being unified
	members int         // needed, of all types; enumerators count
	meter   *limits.Meter
	err     error // a limit that is exceeded
}

type nameKey struct {
	kind btfenc.Kind
	name string
}

// keep says what is kept besides what matches depend upon.
type keep int

const (
	keepNothing  keep = iota
	keepStructs       // structs and unions without members, instead of forward declarations
	keepPointees      // what the needed pointers lead to, though none of its members
	keepMembers       // all members and enumerators of needed types
)

// sameName are the structs or unions that share kind and name.
type sameName struct {
	nodes  []int
	uneven bool // in marks.uneven
}

// newMarks returns an empty set of marks. anonymous says that a relocation is
// of kind type_matches: cilium/ebpf compares the last anonymous member of a
// struct with the local one, so the last must stay the last.
func newMarks(anonymous bool) *marks {
	m := &marks{anonymous: anonymous, index: make(map[nodeKey]int), names: make(map[nameKey]*sameName), waiting: make(map[nameKey][]*node)}
	m.reset(context.Background())
	return m
}

// reset removes all marks. What comes next is to end with ctx.
func (m *marks) reset(ctx context.Context) {
	m.nodes, m.deep = m.nodes[:0], 0
	clear(m.index)
	clear(m.names)
	clear(m.waiting)
	m.grown, m.uneven, m.members = m.grown[:0], m.uneven[:0], 0
	m.meter, m.err = limits.NewMeter(ctx, limits.Marks, "steps to tell what is needed"), nil
}

// goesOn takes steps, and reports whether marking goes on.
func (m *marks) goesOn(steps int) bool { return m.meter.Step(steps) && m.err == nil }

// fail says why it must not: a limit that is exceeded, or the end of the context.
func (m *marks) fail() error {
	if m.err != nil {
		return m.err
	}
	return m.meter.Err()
}

// newNode returns the memory of a node that reset has removed, or new memory.
func (m *marks) newNode(t rawbtf.Type) *node {
	if n := len(m.nodes); n < cap(m.nodes) && m.nodes[:n+1][n] != nil {
		old := m.nodes[:n+1][n]
		*old = node{t: t, idx: old.idx[:0], within: old.within[:0]}
		return old
	}
	return &node{t: t}
}

// node returns the index of the node of a type, which it adds if need be.
func (m *marks) node(t rawbtf.Type) int {
	k := nodeKey{t.BTF(), t.ID}
	i, ok := m.index[k]
	if ok {
		return i
	}
	if i = len(m.nodes); i == limits.Types {
		m.err = &limits.Exceeded{Max: limits.Types, What: "types needed"}
		return 0
	}
	if kind := t.Kind(); kind == btfenc.KindDeclTag || kind == btfenc.KindDatasec {
		m.err = fmt.Errorf("type %d: a %s in the place of a type", t.ID, kind)
	}
	m.index[k] = i
	n := m.newNode(t)
	m.nodes = append(m.nodes, n)
	if kind := t.Kind(); kind.IsComposite() && t.NameOff != 0 {
		s := m.names[nameKey{kind, string(t.Name())}]
		if s == nil {
			key := nameKey{kind, string(t.Name())}
			s = new(sameName)
			m.names[key] = s
			for _, w := range m.waiting[key] {
				m.grow(w)
			}
			delete(m.waiting, key)
		}
		s.nodes = append(s.nodes, i)
		n.within = append(n.within, s)
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
	for _, s := range n.within {
		if !s.uneven {
			s.uneven = true
			m.uneven = append(m.uneven, s)
		}
	}
}

// behind returns the node of what a member or a pointer refers to. The output has it without
// what is in front of it, which must not give a size to a type that has none for loaders.
func (m *marks) behind(t *rawbtf.Type, id btfenc.TypeID) int {
	if m.tooDeep(t.BTF(), id) {
		return m.node(rawbtf.Type{})
	}
	return m.node(standsFor(t, id))
}

// tooDeep reports, and notes, whether a type is behind more than loaders follow.
func (m *marks) tooDeep(b *rawbtf.BTF, id btfenc.TypeID) bool {
	_, err := b.SizeOf(id)
	if err == rawbtf.ErrDepth {
		m.deep = id
	}
	return err == rawbtf.ErrDepth
}

// standsFor returns what t refers to by id, without modifiers and typedefs, which
// have an end.
func standsFor(t *rawbtf.Type, id btfenc.TypeID) rawbtf.Type {
	u, _ := t.BTF().SkipMods(id)
	return u
}

// need adds i to the members or enumerators of n and reports whether it is
// new.
func (m *marks) need(n *node, i uint32) bool {
	at, ok := slices.BinarySearch(n.idx, i)
	if ok || !m.goesOn(1+(len(n.idx)-at)/64+len(n.within)) {
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

// add notes what one match depends upon.
func (m *marks) add(match *engine.Match) {
	for _, nd := range match.Needs {
		if !m.goesOn(1) {
			return
		}
		n := m.nodes[m.node(match.BTF.Type(nd.Type))]
		switch nd.What {
		case engine.NeedMember, engine.NeedEnumerator:
			m.need(n, nd.Idx)
		case engine.NeedPointee:
			n.pointee = true
		case engine.NeedIndex:
			n.index = true
		}
	}
	root := m.nodes[m.node(match.BTF.Type(match.Type))]
	root.name, root.value = true, true
	if match.Asks(engine.KindTargetTypeID) {
		root.copies = true
	}
}

// settle adds the types that the marked ones lead to, and the marks that
// follow from others, until there are no more. The error is a [limits.Exceeded] or
// that of the context.
func (m *marks) settle() error {
	for len(m.grown) > 0 || len(m.uneven) > 0 {
		for n := len(m.grown); n > 0; n = len(m.grown) {
			g := m.grown[n-1]
			m.grown, g.queued = m.grown[:n-1], false
			if m.expand(g); !m.goesOn(1 + len(g.idx)) {
				return m.fail()
			}
		}
		uneven := m.uneven
		m.uneven = nil
		for _, s := range uneven {
			if s.uneven = false; len(s.nodes) < 2 {
				continue
			}
			m.current = s
			if m.unify(s.nodes, 0); !m.goesOn(1) {
				return m.fail()
			}
		}
	}
	return m.fail()
}

// expand makes sure that all that n refers to has a node.
func (m *marks) expand(n *node) {
	t := &n.t
	if k := t.Kind(); m.keep == keepMembers && (k.IsComposite() || k.IsAnyEnum()) {
		for i := range t.Vlen() {
			m.need(n, i)
		}
	}
	switch k := t.Kind(); k {
	case btfenc.KindStruct, btfenc.KindUnion:
		m.keepInner(n)
		if m.anonymous {
			m.keepAnonymous(n)
		}
		for _, i := range n.idx {
			mem := t.Member(i)
			m.behind(t, mem.Type)
			// cilium/ebpf takes a member of such an integer for a bitfield, if nothing is in front of the integer and the
			// struct has no kind flag. The output may be like that where the kernel is not.
			if u := standsFor(t, mem.Type); engine.BitfieldInt(u) && (u.ID != mem.Type || t.KindFlag()) {
				m.err = fmt.Errorf("type %d: an integer whose bits are not those of its size, behind a typedef or in a struct with a kind flag", u.ID)
			}
		}
	case btfenc.KindPtr:
		if n.pointee = n.pointee || m.keep == keepPointees; n.pointee {
			m.behind(t, t.Ref())
		}
	case btfenc.KindTypedef:
		if n.value {
			m.behind(t, t.ID) // what Ref stands for, if it is not too far from here
		}
	case btfenc.KindArray:
		a := t.Array()
		m.behind(t, a.Elem)
		if n.index {
			m.behind(t, a.Index)
		}
	case btfenc.KindFunc: // libbpf reads no BTF with a function that has no prototype
		m.behind(t, t.Ref())
	case btfenc.KindFuncProto:
		m.behind(t, t.Ref())
		for i := range t.Vlen() {
			m.behind(t, t.Param(i).Type)
		}
	}
	if n.exact {
		m.expandExact(n)
	}
}

// keepInner makes sure that an array without elements that is not the last
// member does not become the last, which would make it a flexible one.
func (m *marks) keepInner(n *node) {
	if len(n.idx) == 0 {
		return
	}
	last := n.idx[len(n.idx)-1]
	if end := n.t.Vlen() - 1; last != end {
		t := standsFor(&n.t, n.t.Member(last).Type)
		if t.Kind() == btfenc.KindArray && t.Array().Nelems == 0 {
			m.need(n, end)
		}
	}
}

// keepAnonymous adds all anonymous members if there is one.
func (m *marks) keepAnonymous(n *node) {
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

// follow notes that what is being unified depends on the marks of n, which is
// inside it.
func (m *marks) follow(n *node) {
	if s := m.current; s != nil && m.goesOn(1+len(n.within)) && !slices.Contains(n.within, s) {
		n.within = append(n.within, s)
	}
}

// memberKey identifies a member among copies of one struct.
type memberKey struct {
	name      string
	bitOffset uint32
}

func keyOf(t *rawbtf.Type, i uint32) memberKey {
	mem := t.Member(i)
	return memberKey{string(t.BTF().Name(mem.NameOff)), mem.BitOffset}
}

// maxDepth is how deep anonymous members nest, as libbpf's
// BPF_CORE_SPEC_MAX_LEN bounds it.
const maxDepth = 64

// unify gives copies of one struct or union the same marks, down into the
// anonymous ones inside, and reports whether that added any. What is added
// exists in the kernel's type as well, so no new match can come of it. depth
// bounds anonymous structs that contain themselves.
func (m *marks) unify(nodes []int, depth int) bool {
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
		return false
	}
	changed := false
	for _, ni := range nodes {
		if n := m.nodes[ni]; whole && !n.whole {
			m.keepWhole(n.t.BTF(), n.t.ID)
			changed = true
		} else if exact && !n.exact {
			m.makeExact(n)
			changed = true
		}
	}
	inner := make(map[memberKey][]int)
	for _, ni := range nodes {
		n := m.nodes[ni]
		if !m.goesOn(int(n.t.Vlen())) {
			return false
		}
		for i := range n.t.Vlen() {
			k := keyOf(&n.t, i)
			if !want[k] {
				continue
			}
			if m.need(n, i) {
				changed = true
			}
			if k.name != "" {
				continue
			}
			if in := m.behind(&n.t, n.t.Member(i).Type); m.nodes[in].t.Kind().IsComposite() {
				inner[k] = append(inner[k], in)
				m.follow(m.nodes[in])
			}
		}
	}
	for _, l := range inner {
		slices.Sort(l)
		if l = slices.Compact(l); len(l) > 1 && m.unify(l, depth+1) {
			changed = true
		}
	}
	return changed
}
