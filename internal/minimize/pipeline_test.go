// SPDX-License-Identifier: Apache-2.0

package minimize

import (
	"cmp"
	"errors"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/verify"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// mutation is one way to go wrong, at one of the points where Minimizer.minimize
// can. The zero value breaks nothing.
type mutation struct {
	rule  string // what is broken
	needs func(*core.Found)
	marks func(*marks) // before settle
	skip  string       // rule of settle that is left out
	after func(*marks) // after settle
	graph func(*graph, map[nodeKey]int)
	list  func([]*canonical.Type) []*canonical.Type
}

// pipeline is Minimizer.minimize taken apart, for one kernel and many
// mutations. The matches with the kernel are kept, because they do not change.
type pipeline struct {
	*testing.T
	m       *Minimizer
	set     *core.Set
	kernel  *core.Target
	matches []core.Found
	judge   *verify.Judge
	whole   []byte // output of no mutation
}

// newPipeline returns nil for a kernel that no object is for.
func newPipeline(t *testing.T, name string, btf []byte, objects []verify.Object, keep ...string) *pipeline {
	t.Helper()
	kept, err := core.ParseKeep(keep...)
	if err != nil {
		t.Fatal(err)
	}
	var plain []*core.Object
	for _, o := range objects {
		plain = append(plain, o.Object)
	}
	target, err := testinput.NewKernel(name, btf)
	if err != nil {
		t.Fatal(err)
	}
	p := &pipeline{T: t, m: New(plain, Options{Keep: kept}), kernel: target}
	p.whole, err = blob(p.m.Minimize(t.Context(), target))
	if errors.Is(err, ErrNoObject) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if p.set = p.m.sets.For(target); p.m.keepOnly {
		p.set = core.NewSet()
	}
	err = p.m.fill.Fill(t.Context(), &p.m.full, p.set, p.kernel, func(m *core.Found) {
		c := *m
		c.Needs = slices.Clone(m.Needs)
		p.matches = append(p.matches, c)
	})
	if err != nil {
		t.Fatal(err)
	}
	p.judge = judge(t, objects, name, btf)
	if got := p.run(&mutation{}); !slices.Equal(got, p.whole) {
		t.Fatal("the pipeline of the test does not do what Minimize does")
	}
	return p
}

// judge returns the judge of a kernel.
func judge(t *testing.T, objects []verify.Object, name string, btf []byte) *verify.Judge {
	t.Helper()
	j := verify.NewJudge(t.Context(), verify.Config{Objects: objects})
	if err := j.Load(t.Context(), &corpus.Kernel{Name: name, BTF: btf}); err != nil {
		t.Fatal(err)
	}
	return j
}

// run returns the output of the mutated pipeline.
func (p *pipeline) run(mu *mutation) []byte {
	g, at := p.lower(mu)
	if mu.graph != nil {
		mu.graph(g, at)
	}
	l := p.merge(g.types)
	if mu.list != nil {
		l = mu.list(l)
	}
	return canonical.Write(l, p.kernel.Order())
}

// merge is canonical.Merge.
func (p *pipeline) merge(types []*canonical.Type) []*canonical.Type {
	l, err := canonical.Merge(p.Context(), types)
	if err != nil {
		p.Fatal(err)
	}
	return l
}

// mark marks what a mutated pipeline needs.
func (p *pipeline) mark(mu *mutation) *marks {
	m := newMarks(p.Context(), p.set.HasKind(relo.TypeMatches), extraNone)
	for _, match := range p.matches {
		if mu.needs != nil {
			match.Needs = slices.Clone(match.Needs)
			mu.needs(&match)
		}
		m.add(&match)
	}
	if _, err := p.m.opts.Keep.Find(p.Context(), p.kernel, m.addKept); err != nil {
		p.Fatal(err)
	}
	if mu.marks != nil {
		mu.marks(m)
	}
	settleWithout(m, mu.skip)
	if mu.after != nil {
		mu.after(m)
	}
	return m
}

// lower returns the output types of a mutated pipeline, and the place of each
// node among them.
func (p *pipeline) lower(mu *mutation) (*graph, map[nodeKey]int) {
	m := p.mark(mu)
	g := newGraph(m, p.set, uint32(p.kernel.PointerSize()))
	if mu.skip == "integer names" {
		g.intNames = false
	}
	if mu.skip == "pointer size" {
		g.ptrSize = 8
	}
	if err := g.lowerAll(); err != nil {
		p.Fatal(err)
	}
	return g, m.index
}

// prove is Minimizer.prove.
func (p *pipeline) prove(out []byte) error { return p.m.prove(p.Context(), p.kernel, p.set, out) }

// settleWithout is marks.settle without one of its rules, "" for none.
func settleWithout(m *marks, rule string) {
	if rule == "needAnonymous" {
		m.anonymous = false
	}
	for before := -1; before != marked(m); {
		before = marked(m)
		for i := 0; i < len(m.nodes); i++ {
			n := m.nodes[i]
			had := slices.Clone(n.idx)
			if m.expand(n); rule == "needEnd" {
				dropInner(n, had)
			}
		}
		if rule == "unify" {
			return
		}
		for _, nodes := range m.names {
			if len(nodes) > 1 {
				m.unify(nodes, 0)
			}
		}
	}
}

// marked counts the marks.
func marked(m *marks) int {
	n := len(m.nodes)
	for _, nd := range m.nodes {
		n += len(nd.idx)
		if nd.exact {
			n++
		}
		if nd.whole {
			n++
		}
	}
	return n
}

// dropInner takes back what needEnd alone has added, which is the last
// member. needAnonymous can add it too, if it is anonymous.
func dropInner(n *node, had []uint32) {
	if !n.t.Kind().IsComposite() || len(n.idx) == 0 {
		return
	}
	if end := n.t.Vlen() - 1; n.idx[len(n.idx)-1] == end && !slices.Contains(had, end) && !n.t.BTF().NameIs(n.t.Member(end).NameOff, "") {
		n.idx = n.idx[:len(n.idx)-1]
	}
}

// sortedNodes returns the nodes of marks in an order that does not depend on
// that of maps.
func sortedNodes(m *marks) []*node {
	l := slices.Clone(m.nodes)
	slices.SortFunc(l, func(a, b *node) int { return cmp.Compare(a.t.ID, b.t.ID) })
	return l
}
