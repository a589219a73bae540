// SPDX-License-Identifier: Apache-2.0

package canonical

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"sort"

	"github.com/btfgen/btfgen/internal/limits"
)

// Merge merges equal types and sorts them into their canonical order. It returns the types to write, with references to
// positions in that order. It ignores nil types; references to them become Void. It takes n log n steps and memory for n
// types. The error is that of the context.
//
// Merge splits types into classes by their content, and then again by the classes of the types that they refer to, until
// no class can be split. Classes are numbered by sorting, so the result does not depend on the order of the input.
func Merge(ctx context.Context, types []*Type) ([]*Type, error) {
	p := newPartition(ctx, types)
	for moved := p.byContent(); len(moved) > 0 && p.meter.Err() == nil; {
		moved = p.round(moved)
	}
	if err := p.meter.Err(); err != nil {
		return nil, err
	}
	return p.representatives(), nil
}

// partition is a list of types in classes. The classes are sorted, and the order of two types does not change once they
// are in different classes: a round only splits classes. The largest part of a class that is split stays the class, and
// the other types move to new ones (Hopcroft's trick). So a type moves no more often than its class can halve.
type partition struct {
	types []*Type   // void is the first
	order []int32   // types, those of a class side by side
	place []int32   // position of each type in order
	class []int32   // class of each type
	parts []block   // position and size of each class in order
	by    [][]int32 // types that refer to each type
	meter *limits.Meter
}

// block is a class, or a part of one: where in order it begins, and its size.
type block struct{ start, size int32 }

func newPartition(ctx context.Context, types []*Type) *partition {
	n := len(types) + 1
	p := &partition{types: append([]*Type{{}}, types...), place: make([]int32, n), class: make([]int32, n), by: make([][]int32, n)}
	p.meter = limits.NewMeter(ctx, math.MaxInt64, "steps")
	for i, o := range p.types {
		if o == nil {
			continue
		}
		p.place[i] = int32(len(p.order))
		p.order = append(p.order, int32(i))
		for _, r := range o.Refs {
			t := p.target(r)
			p.by[t] = append(p.by[t], int32(i))
		}
		p.meter.Step(1 + len(o.Refs))
	}
	p.parts = []block{{0, int32(len(p.order))}}
	return p
}

// target returns the type that a reference leads to.
func (p *partition) target(r int) int32 {
	if r == Void || p.types[r+1] == nil {
		return 0
	}
	return int32(r + 1)
}

// byContent makes a class of the types with each content, and one of void. It returns the types that moved.
func (p *partition) byContent() []int32 {
	keys := make([][]byte, len(p.types))
	var b []byte // bytes of all keys
	for _, i := range p.order[1:] {
		from := len(b)
		b = p.types[i].AppendContent(b)
		keys[i] = b[from:len(b):len(b)]
		p.meter.Step(1 + len(p.types[i].Fields))
	}
	var l splits
	p.split(&l, 0, slices.Clone(p.order), func(a, b int32) int { return bytes.Compare(keys[a], keys[b]) })
	p.apply(&l)
	return slices.Clone(p.order)
}

// round splits the classes of the types that refer to a moved one, by the classes before the round. It returns the types
// that moved.
func (p *partition) round(moved []int32) []int32 {
	looked := make(map[int32][]int32) // types that refer to a moved one, keyed by class
	seen := make(map[int32]bool)
	for _, t := range moved {
		for _, i := range p.by[t] {
			if c := p.class[i]; p.parts[c].size > 1 && !seen[i] {
				seen[i] = true
				looked[c] = append(looked[c], i)
			}
		}
		p.meter.Step(1 + len(p.by[t]))
	}
	var l splits
	for c, types := range looked {
		p.split(&l, c, types, p.compareRefs)
	}
	return p.apply(&l)
}

// compareRefs compares two types of a class by the classes of their references.
func (p *partition) compareRefs(a, b int32) int {
	at := func(r int) int32 { return p.parts[p.class[p.target(r)]].start }
	return slices.CompareFunc(p.types[a].Refs, p.types[b].Refs, func(a, b int) int {
		p.meter.Step(1)
		return cmp.Compare(at(a), at(b))
	})
}

// splits are the changes of a round: the classes that become smaller, and the new ones.
type splits struct {
	classes []int32
	smaller []block // the part that stays, for each of classes
	added   []block
}

// split splits a class, given the types in it that may differ from the others, which are equal. It gives up when the
// context ends.
func (p *partition) split(l *splits, class int32, types []int32, compare func(a, b int32) int) {
	slices.SortFunc(types, func(a, b int32) int {
		if !p.meter.Step(1) {
			return 0
		}
		return compare(a, b)
	})
	start, n := p.parts[class].start, int32(len(types))
	for k, i := range types {
		p.put(i, start+int32(k))
	}
	rest := p.parts[class].size - n
	before := n // how many of the types lie before the rest
	if rest > 0 {
		other := p.order[start+n]
		before = int32(sort.Search(int(n), func(k int) bool { return compare(types[k], other) > 0 }))
		for k := n - 1; k >= before; k-- {
			p.put(types[k], start+rest+k)
		}
	}
	largest, parts := block{start + before, rest}, []block(nil)
	for from, k := int32(0), int32(1); k <= n; k++ {
		if k < n && k != before && compare(types[k-1], types[k]) == 0 {
			continue
		}
		one := block{start + from, k - from}
		if from >= before {
			one.start += rest
		}
		if from = k; one.size > largest.size {
			one, largest = largest, one
		}
		if one.size > 0 {
			parts = append(parts, one)
		}
	}
	l.classes, l.smaller, l.added = append(l.classes, class), append(l.smaller, largest), append(l.added, parts...)
}

// apply makes the changes of a round and returns the types that moved.
func (p *partition) apply(l *splits) (moved []int32) {
	for i, c := range l.classes {
		p.parts[c] = l.smaller[i]
	}
	for _, a := range l.added {
		for _, i := range p.order[a.start:][:a.size] {
			p.class[i] = int32(len(p.parts))
			moved = append(moved, i)
		}
		p.parts = append(p.parts, a)
	}
	return moved
}

// put swaps a type with the type at a place.
func (p *partition) put(i, at int32) {
	other, from := p.order[at], p.place[i]
	p.order[at], p.order[from] = i, other
	p.place[i], p.place[other] = at, from
}

// kept is a type to write.
type kept struct {
	*Type
	class int32
	order int
}

// representatives returns one type of each class, or as many as its Copies, in the order
// of the classes. It sorts types with one name by their Order.
func (p *partition) representatives() []*Type {
	var all []kept
	for next := int32(1); int(next) < len(p.order); { // void is first
		c := p.class[p.order[next]]
		members := p.order[next:][:p.parts[c].size]
		next += p.parts[c].size
		one, from := kept{p.types[members[0]], c, p.types[members[0]].Order}, len(all)
		for _, i := range members {
			for range p.types[i].Copies {
				all = append(all, kept{one.Type, c, p.types[i].Order})
			}
			one.order = min(one.order, p.types[i].Order)
		}
		if len(all) == from {
			all = append(all, one)
		}
	}
	for from, i := 0, 1; i <= len(all); i++ {
		if i == len(all) || all[i].Name != all[from].Name {
			if all[from].Name != "" {
				slices.SortStableFunc(all[from:i], func(a, b kept) int { return cmp.Compare(a.order, b.order) })
			}
			from = i
		}
	}
	at := slices.Repeat([]int{Void}, len(p.parts)) // position of the first of each class
	out := make([]*Type, len(all))
	for i, k := range all {
		if out[i] = k.Type; at[k.class] == Void {
			at[k.class] = i
		}
	}
	for i, k := range all {
		if at[k.class] != i {
			continue
		}
		k.Refs = slices.Clone(k.Refs)
		for j, r := range k.Refs {
			k.Refs[j] = at[p.class[p.target(r)]]
		}
	}
	return out
}
