// SPDX-License-Identifier: Apache-2.0

package minimize

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Mutants of the minimizer. Each leaves out one kind of need or one rule, drops one
// mark, or changes one field of the output. The proof must refuse a mutant that
// changes a decision.

// needNames are the kinds of needs.
var needNames = map[core.What]string{
	core.NeedMember: "member", core.NeedEnumerator: "enumerator",
	core.NeedPointee: "pointee", core.NeedIndex: "index",
}

// settleRules names the rules of settle and lower that a mutant can leave out.
var settleRules = []string{"needEnd", "needAnonymous", "unify", "integer names", "pointer size"}

// without returns mutations that leave out a rule everywhere.
func without() (l []mutation) {
	for what, name := range needNames {
		l = append(l, mutation{rule: "without needs: " + name, needs: func(m *core.Found) {
			m.Needs = slices.DeleteFunc(m.Needs, func(n core.Need) bool { return n.What == what })
		}})
	}
	for _, r := range settleRules {
		l = append(l, mutation{rule: "without " + r, skip: r})
	}
	each := func(rule string, drop func(*node)) {
		l = append(l, mutation{rule: "without " + rule, marks: func(m *marks) {
			for _, n := range m.nodes {
				drop(n)
			}
		}})
	}
	each("name", func(n *node) { n.root = false })
	each("copies", func(n *node) { n.copies = false })
	slices.SortFunc(l, func(a, b mutation) int { return strings.Compare(a.rule, b.rule) })
	return l
}

// mutants returns all mutations that change one mark or one part of the output.
func (p *pipeline) mutants() []mutation {
	l := p.markMutants()
	g, at := p.lower(&mutation{})
	for _, n := range sortedNodes(g.m) {
		key := nodeKey{n.t.BTF(), n.t.ID}
		if o := g.types[at[key]]; o != nil {
			l = append(l, typeMutants(o, key)...)
		}
	}
	return append(l, listMutants(p.merge(g.types))...)
}

// markMutants returns mutations that drop one mark, before settle runs or after it.
func (p *pipeline) markMutants() (l []mutation) {
	for _, late := range []bool{false, true} {
		m := newMarks(p.Context(), p.set.HasKind(relo.TypeMatches), extraNone)
		if late {
			m = p.mark(&mutation{})
		} else {
			for i := range p.matches {
				m.add(&p.matches[i])
			}
		}
		for _, n := range sortedNodes(m) {
			key := nodeKey{n.t.BTF(), n.t.ID}
			add := func(rule string, change func(*node)) {
				mu := mutation{rule: "mark: " + rule}
				fn := func(m *marks) { change(m.nodes[m.index[key]]) }
				if mu.marks = fn; late {
					mu.marks, mu.after, mu.rule = nil, fn, mu.rule+", late"
				}
				l = append(l, mu)
			}
			what := "member"
			if n.t.Kind().IsAnyEnum() {
				what = "enumerator"
			}
			for _, i := range n.idx {
				add(what, func(n *node) { n.idx = slices.DeleteFunc(n.idx, func(j uint32) bool { return i == j }) })
			}
			if n.pointee {
				add("pointee", func(n *node) { n.pointee = false })
			}
			if n.index {
				add("index", func(n *node) { n.index = false })
			}
			if n.root && n.t.Kind() == btf.KindInt {
				add("name", func(n *node) { n.root = false })
			}
			if n.copies {
				add("copies", func(n *node) { n.copies = false })
			}
		}
	}
	return l
}

// typeMutants returns mutations of one type of the output.
func typeMutants(o *canonical.Type, key nodeKey) (l []mutation) {
	add := func(rule string, change func(*graph, *canonical.Type)) {
		l = append(l, mutation{rule: "type: " + rule, graph: func(g *graph, at map[nodeKey]int) {
			change(g, g.types[at[key]])
		}})
	}
	add("dropped", func(g *graph, o *canonical.Type) {
		i := slices.Index(g.types, o)
		g.types[i] = nil
		for _, u := range g.types {
			for j := range refsOf(u) {
				if u.Refs[j] == i {
					u.Refs[j] = canonical.Void
				}
			}
		}
	})
	add("name", func(_ *graph, o *canonical.Type) { o.Name += "x" })
	if o.Name != "" {
		add("name lost", func(_ *graph, o *canonical.Type) { o.Name = "" })
	}
	add("twice", func(_ *graph, o *canonical.Type) { o.Copies = 2 })
	switch o.Kind {
	case btf.KindStruct, btf.KindUnion:
		add("size", func(_ *graph, o *canonical.Type) { o.Size += 8 })
		add("kind", func(_ *graph, o *canonical.Type) { o.Kind ^= btf.KindStruct ^ btf.KindUnion })
		add("kind_flag", func(_ *graph, o *canonical.Type) { o.Flag = !o.Flag })
	case btf.KindInt:
		add("size", func(_ *graph, o *canonical.Type) { o.Size, o.Fields[0].Lo = o.Size*2, o.Fields[0].Lo+o.Size*8 })
		add("sign", func(_ *graph, o *canonical.Type) { o.Fields[0].Lo ^= btf.IntSigned << 24 })
		add("bool", func(_ *graph, o *canonical.Type) { o.Fields[0].Lo ^= btf.IntBool << 24 })
	case btf.KindEnum, btf.KindEnum64:
		add("size", func(_ *graph, o *canonical.Type) { o.Size *= 2 })
		add("kind", func(_ *graph, o *canonical.Type) { o.Kind ^= btf.KindEnum ^ btf.KindEnum64 })
		add("kind_flag", func(_ *graph, o *canonical.Type) { o.Flag = !o.Flag })
	case btf.KindFwd:
		add("kind_flag", func(_ *graph, o *canonical.Type) { o.Flag = !o.Flag })
	}
	for i := range o.Fields {
		fieldMutants(o, i, add)
	}
	for i := range o.Refs {
		if o.Refs[i] != canonical.Void {
			add("reference to void", func(_ *graph, o *canonical.Type) { o.Refs[i] = canonical.Void })
		}
		add("reference to another", func(g *graph, o *canonical.Type) { o.Refs[i] = another(g, o.Refs[i]) })
	}
	return l
}

// fieldMutants adds mutations of one field of a type.
func fieldMutants(o *canonical.Type, i int, add func(string, func(*graph, *canonical.Type))) {
	switch o.Kind {
	case btf.KindStruct, btf.KindUnion:
		add("offset", func(_ *graph, o *canonical.Type) { o.Fields[i].Lo += 8 })
		if o.Flag {
			add("offset by a bit", func(_ *graph, o *canonical.Type) { o.Fields[i].Lo++ })
			add("bit size", func(_ *graph, o *canonical.Type) { o.Fields[i].Lo += 1 << 24 })
		}
	case btf.KindEnum:
		add("value", func(_ *graph, o *canonical.Type) { o.Fields[i].Lo ^= 1 })
	case btf.KindEnum64:
		add("value", func(_ *graph, o *canonical.Type) { o.Fields[i].Lo ^= 1 })
		add("upper half of a value", func(_ *graph, o *canonical.Type) { o.Fields[i].Hi ^= 1 })
	case btf.KindArray:
		add("one element more", func(_ *graph, o *canonical.Type) { o.Fields[i].Lo++ })
		add("one element less", func(_ *graph, o *canonical.Type) { o.Fields[i].Lo = max(1, o.Fields[i].Lo) - 1 })
		return
	default:
		if o.Kind != btf.KindFuncProto {
			return
		}
	}
	ref := len(o.Refs) - len(o.Fields) + i // of parameters the return type comes first; enumerators have none
	add("field dropped", func(_ *graph, o *canonical.Type) {
		o.Fields = slices.Delete(slices.Clone(o.Fields), i, i+1)
		if len(o.Refs) > 0 {
			o.Refs = slices.Delete(slices.Clone(o.Refs), ref, ref+1)
		}
	})
	if o.Kind != btf.KindFuncProto {
		add("name of a field", func(_ *graph, o *canonical.Type) { o.Fields[i].Name += "x" })
	}
	if i > 0 {
		add("order of fields", func(_ *graph, o *canonical.Type) {
			o.Fields[i], o.Fields[i-1] = o.Fields[i-1], o.Fields[i]
			if len(o.Refs) > 0 {
				o.Refs[ref], o.Refs[ref-1] = o.Refs[ref-1], o.Refs[ref]
			}
		})
	}
}

// refsOf returns the references of a type. A nil type has none.
func refsOf(o *canonical.Type) []int {
	if o == nil {
		return nil
	}
	return o.Refs
}

// another returns the index of a type whose kind differs from the one at ref.
func another(g *graph, ref int) int {
	kind := btf.KindVoid
	if ref != canonical.Void {
		kind = g.types[ref].Kind
	}
	for _, n := range sortedNodes(g.m) {
		if i := g.m.index[nodeKey{n.t.BTF(), n.t.ID}]; g.types[i] != nil && g.types[i].Kind != kind {
			return i
		}
	}
	return canonical.Void
}

// listMutants returns mutations of the list of merged types: two types of one name are
// swapped or merged.
func listMutants(types []*canonical.Type) (l []mutation) {
	add := func(rule string, change func([]*canonical.Type) []int) {
		l = append(l, mutation{rule: "list: " + rule, list: func(types []*canonical.Type) []*canonical.Type {
			return reorder(types, change(types))
		}})
	}
	all := func(types []*canonical.Type) []int {
		at := make([]int, len(types))
		for i := range at {
			at[i] = i
		}
		return at
	}
	for i, o := range types {
		for j := i + 1; j < len(types) && o.Name != "" && essential(types[j]) == essential(o); j++ {
			add("candidates change places", func(types []*canonical.Type) []int {
				at := all(types)
				at[i], at[j] = j, i
				return at
			})
			add("candidates merged", func(types []*canonical.Type) []int { return slices.Delete(all(types), j, j+1) })
		}
	}
	return l
}

func essential(o *canonical.Type) string { return string(btf.Essential([]byte(o.Name))) }

// reorder returns the types at these indices. References to a type that is left out
// refer to the type before it.
func reorder(types []*canonical.Type, at []int) []*canonical.Type {
	to := make([]int, len(types))
	for i := range to {
		to[i] = slices.Index(at, i)
		if to[i] < 0 {
			to[i] = to[max(i, 1)-1]
		}
	}
	moved := make(map[*canonical.Type]*canonical.Type) // copies are one in memory
	var out []*canonical.Type
	for _, i := range at {
		o := types[i]
		if moved[o] == nil {
			c := *o
			c.Refs = slices.Clone(o.Refs)
			for j, r := range c.Refs {
				if r != canonical.Void {
					c.Refs[j] = to[r]
				}
			}
			moved[o] = &c
		}
		out = append(out, moved[o])
	}
	return out
}

// sample returns at most n mutations of each rule.
func sample(l []mutation, n int, rnd *rand.Rand) (out []mutation) {
	rnd.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
	seen := make(map[string]int)
	for _, mu := range l {
		if seen[mu.rule]++; seen[mu.rule] <= n {
			out = append(out, mu)
		}
	}
	return out
}

// count counts the mutants of one rule.
type count struct {
	made    int
	same    int // output equal to the unmutated one
	changed int // changed a decision, and refused
	refused int
	beyond  int // refused, although no loader decides differently
}

// tally counts mutants by rule.
type tally map[string]*count

func (t tally) of(rule string) *count {
	if t[rule] == nil {
		t[rule] = new(count)
	}
	return t[rule]
}

func (t tally) total() (sum count) {
	for _, n := range t {
		sum.made += n.made
		sum.same += n.same
		sum.changed += n.changed
		sum.refused += n.refused
		sum.beyond += n.beyond
	}
	return sum
}

func (t tally) log(tb testing.TB) {
	sum := t.total()
	tb.Logf("%d mutants, %d of them with other bytes; %d changed a decision; the proof refused %d, %d of them without need", sum.made, sum.made-sum.same, sum.changed, sum.refused, sum.beyond)
	for _, r := range slices.Sorted(maps.Keys(t)) {
		n := t[r]
		tb.Logf("%-36s %5d made %5d other bytes %5d changed a decision %5d refused without need", r, n.made, n.made-n.same, n.changed, n.beyond)
	}
}
