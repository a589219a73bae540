// SPDX-License-Identifier: Apache-2.0

package core

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Set is the distinct questions of some objects of one byte order: some hundreds
// for a tracer with tens of thousands of records. A Set is immutable and safe for
// many goroutines.
type Set struct {
	objects   []setObject
	questions []question
	byName    [][]int  // questions by the number of the name
	names     []string // distinct names of the roots, without the flavors that loaders agree on
	index     *btf.Names
	kinds     uint16 // kinds of all questions, bit set
}

// setObject is an object of a set.
type setObject struct {
	*Object
	question []int        // question of each spec; -1 for those that do not depend on the kernel
	local    []localValue // local value of each spec
	roots    []root
	sites    []site
	siteOf   []int32                 // site of each record
	rootOf   []int32                 // root of each spec
	groups   func() (*groups, error) // records grouped as cilium/ebpf does
}

// root is a local type with relocations. libbpf keeps one list of candidates for
// each, which every resolved relocation narrows.
type root struct {
	question int     // one of its questions, -1 if it has none
	records  []int32 // sorted as in the object
}

// site is a distinct pair of spec and instruction. With the same remaining
// candidates, records of one site have the same decision.
type site struct {
	spec int32
	insn insn
}

// NewSet returns the questions of objects, which must have the same byte order.
func NewSet(objects ...*Object) *Set {
	s := new(Set)
	b := setBuilder{Set: s, names: make(map[string]int), bySignature: make(map[[sha256.Size]byte]int)}
	for _, o := range objects {
		s.objects = append(s.objects, b.object(o))
	}
	s.index = btf.NewNames(s.names)
	s.byName = make([][]int, len(s.names))
	for i := range s.questions {
		q := &s.questions[i]
		s.kinds |= q.kinds
		s.byName[q.name] = append(s.byName[q.name], i)
	}
	return s
}

// Alone returns a function that returns the set of an object alone, made at the first call.
func Alone(o *Object) func() *Set { return sync.OnceValue(func() *Set { return NewSet(o) }) }

// setBuilder is one NewSet.
type setBuilder struct {
	*Set
	names       map[string]int
	bySignature map[[sha256.Size]byte]int
	buf         []byte
}

func (b *setBuilder) object(o *Object) setObject {
	sg := signatures{object: o}
	m := setObject{
		Object: o, question: make([]int, len(o.specs)), local: make([]localValue, len(o.specs)),
		siteOf: make([]int32, len(o.records)), rootOf: make([]int32, len(o.specs)),
	}
	roots := make(map[btf.TypeID]int32)
	for i, sp := range o.specs {
		at, ok := roots[sp.root]
		if !ok {
			at = int32(len(m.roots))
			roots[sp.root] = at
			m.roots = append(m.roots, root{question: -1})
		}
		m.rootOf[i], m.question[i] = at, -1
		if sp.dependsOnKernel() {
			m.question[i] = b.question(&sg, sp)
			m.roots[at].question = m.question[i]
		}
		m.local[i] = sp.local()
	}
	steps := make(map[site]int32)
	for i := range o.records {
		r := &o.records[i]
		s := site{r.spec, r.insn}
		st, ok := steps[s]
		if !ok {
			st = int32(len(m.sites))
			steps[s] = st
			m.sites = append(m.sites, s)
		}
		m.siteOf[i] = st
		at := &m.roots[m.rootOf[r.spec]]
		at.records = append(at.records, int32(i))
	}
	m.groups = sync.OnceValues(m.makeGroups)
	return m
}

// question returns the number of the question that a spec asks.
func (b *setBuilder) question(sg *signatures, sp *spec) int {
	name := sp.name()
	if _, ok := b.names[name]; !ok {
		b.names[name] = len(b.Set.names)
		b.Set.names = append(b.Set.names, name)
	}
	// Specs of different sorts have different questions.
	b.buf = sg.of(sp, append(b.buf[:0], sortOf(sp.kind)))
	sum := sha256.Sum256(b.buf)
	q, ok := b.bySignature[sum]
	if !ok {
		q = len(b.questions)
		b.bySignature[sum] = q
		b.questions = append(b.questions, question{spec: sp, name: b.names[name], rootKind: sp.rootKind()})
	}
	b.questions[q].kinds |= 1 << sp.kind
	return q
}

// Objects returns the objects with their numbers in the set.
func (s *Set) Objects() iter.Seq2[int, *Object] {
	return func(yield func(int, *Object) bool) {
		for i := range s.objects {
			if !yield(i, s.objects[i].Object) {
				return
			}
		}
	}
}

// HasKind reports whether a relocation has kind k.
func (s *Set) HasKind(k relo.Kind) bool { return s.kinds&(1<<k) != 0 }

// HasName reports whether a relocation is about types of this name, which has no
// flavor.
func (s *Set) HasName(name string) bool { return s.index.Has(name) }

// group is the relocations of one local type in one linked program, as distinct specs with counts.
type group struct {
	root   int32
	specs  []int32 // ascending
	counts []int
	total  int
}

// groups are the linked programs of an object, and their distinct groups.
type groups struct {
	programs          []LinkedProgram
	ofProgram, ofRoot [][]*group
}

func (m *setObject) makeGroups() (*groups, error) {
	programs, err := m.LinkedPrograms()
	if err != nil {
		return nil, err
	}
	g := &groups{programs, make([][]*group, len(programs)), make([][]*group, len(m.roots))}
	known := make(map[string]*group)
	for i, p := range programs {
		for _, one := range m.groupsOf(p.Records) {
			key := fmt.Sprint(one)
			if known[key] == nil {
				known[key] = &one
				g.ofRoot[one.root] = append(g.ofRoot[one.root], &one)
			}
			g.ofProgram[i] = append(g.ofProgram[i], known[key])
		}
	}
	return g, nil
}

// groupsOf groups the records of a linked program by local type.
func (m *setObject) groupsOf(records []int) (out []group) {
	specs := make(map[int32]int)
	for _, rec := range records {
		if n := m.records[rec].spec; m.question[n] >= 0 {
			specs[n]++
		}
	}
	at := make(map[int32]int) // index in out, keyed by root
	for _, n := range slices.Sorted(maps.Keys(specs)) {
		root := m.rootOf[n]
		i, ok := at[root]
		if !ok {
			i = len(out)
			at[root] = i
			out = append(out, group{root: root})
		}
		g := &out[i]
		g.specs, g.counts, g.total = append(g.specs, n), append(g.counts, specs[n]), g.total+specs[n]
	}
	return out
}
