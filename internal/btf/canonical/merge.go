// SPDX-License-Identifier: Apache-2.0

package canonical

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/btfgen/btfgen/internal/limits"
)

// Merge merges equal types and sorts them into their canonical order. It returns the types to write, with references to positions in that order. It
// ignores nil types; references to them become Void. It takes n log n steps and memory
// for n types with their references. The error is that of the context.
//
// Merge splits types into classes by their content, and then again by the classes of
// the types that they refer to, until no class can be split. Classes are numbered by
// sorting, so the result does not depend on the order of the input.
func Merge(ctx context.Context, types []*Type) ([]*Type, error) {
	p := newPartition(ctx, types)
	splits := p.byContent()
	for len(splits) > 0 && p.meter.Err() == nil {
		splits = p.round(splits)
	}
	if err := p.meter.Err(); err != nil {
		return nil, err
	}
	return p.representatives(), nil
}

// partition is a list of types in classes. The classes are sorted, and the order of
// two types does not change once they are in different classes: a round only splits
// classes.
//
// A round looks at the types that refer to a class that the last round has split, but
// not at those that refer to its largest part (Hopcroft's trick). So it looks at a
// reference no more often than the class of its target can halve.
type partition struct {
	types []*Type // void is the first
	order []int32 // types, those of a class side by side
	place []int32 // in order, by type
	class []int32 // by type
	start []int32 // where in order a class begins
	size  []int32 // of a class

	by    [][]edge // by type: the references to it
	looks [][]ref  // by type: its references that a round looks at
	meter *limits.Meter
}

// edge is a reference: number ref of type from.
type edge struct{ from, ref int32 }

// ref is a reference to a type whose class was split: where the new class of the type
// begins, and where the largest part begins.
type ref struct{ n, at, most int32 }

// split is the parts of a class that was split, as classes.
type split []int32

func newPartition(ctx context.Context, types []*Type) *partition {
	n := len(types) + 1
	p := &partition{types: append([]*Type{{}}, types...), place: make([]int32, n), class: make([]int32, n)}
	p.by, p.looks = make([][]edge, n), make([][]ref, n)
	p.meter = limits.NewMeter(ctx, math.MaxInt64, "steps")
	for i, o := range p.types {
		if o == nil {
			continue
		}
		p.order = append(p.order, int32(i))
		for r := range o.Refs {
			t := p.target(o.Refs[r])
			p.by[t] = append(p.by[t], edge{int32(i), int32(r)})
		}
		p.meter.Step(1 + len(o.Refs))
	}
	return p
}

// target returns the type that a reference leads to.
func (p *partition) target(r int) int32 {
	if r == Void || p.types[r+1] == nil {
		return 0
	}
	return int32(r + 1)
}

// sort sorts types. It gives up when the context ends.
func (p *partition) sort(l []int32, compare func(a, b int32) int) {
	slices.SortFunc(l, func(a, b int32) int {
		if !p.meter.Step(1) {
			return 0
		}
		return compare(a, b)
	})
}

// byContent makes a class of the types with each content, and one of void. They are
// the parts of one split.
func (p *partition) byContent() []split {
	keys := make([][]byte, len(p.types))
	var b []byte // of all keys
	for _, i := range p.order[1:] {
		from := len(b)
		b = p.types[i].AppendContent(b)
		keys[i] = b[from:len(b):len(b)]
		p.meter.Step(1 + len(p.types[i].Fields))
	}
	p.sort(p.order, func(a, b int32) int { return bytes.Compare(keys[a], keys[b]) })
	var all split
	for at, i := range p.order {
		p.place[i] = int32(at)
		if at == 0 || !bytes.Equal(keys[i], keys[p.order[at-1]]) {
			all = append(all, p.newClass(at))
		}
		p.join(i, all[len(all)-1])
	}
	return []split{all}
}

// newClass begins a class at a place of order.
func (p *partition) newClass(at int) int32 {
	p.start, p.size = append(p.start, int32(at)), append(p.size, 0)
	return int32(len(p.start) - 1)
}

func (p *partition) join(i, class int32) {
	p.class[i] = class
	p.size[class]++
}

// round splits classes by the splits of the round before.
func (p *partition) round(splits []split) (next []split) {
	var looked []int32 // types
	for _, parts := range splits {
		largest := parts[0]
		for _, c := range parts[1:] {
			if p.size[c] > p.size[largest] {
				largest = c
			}
		}
		most := p.start[largest]
		for _, c := range parts {
			if c == largest {
				continue
			}
			for _, t := range p.order[p.start[c]:][:p.size[c]] {
				for _, e := range p.by[t] {
					if p.size[p.class[e.from]] == 1 {
						continue
					}
					if p.looks[e.from] == nil {
						looked = append(looked, e.from)
					}
					p.looks[e.from] = append(p.looks[e.from], ref{e.ref, p.start[c], most})
				}
				if !p.meter.Step(1 + len(p.by[t])) {
					return nil
				}
			}
		}
	}
	for _, i := range looked {
		slices.SortFunc(p.looks[i], func(a, b ref) int { return cmp.Compare(a.n, b.n) })
	}
	p.sort(looked, func(a, b int32) int { return cmp.Compare(p.class[a], p.class[b]) })
	for len(looked) > 0 {
		n := 1
		for n < len(looked) && p.class[looked[n]] == p.class[looked[0]] {
			n++
		}
		if parts := p.splitClass(looked[:n]); len(parts) > 1 {
			next = append(next, parts)
		}
		looked = looked[n:]
	}
	return next
}

// splitClass splits a class, given the types in it that the round looks at, and removes
// their looks.
func (p *partition) splitClass(looked []int32) split {
	p.sort(looked, func(a, b int32) int { return p.compareLooks(p.looks[a], p.looks[b]) })
	class := p.class[looked[0]]
	start, size := p.start[class], p.size[class]
	rest := size - int32(len(looked)) // types that are not looked at stay a class, between the others
	after := int32(0)                 // whether rest lies in front
	var parts split
	if rest > 0 {
		parts = split{class}
	}
	for k, i := range looked {
		if p.compareLooks(p.looks[i], nil) > 0 {
			after = rest
		}
		at := start + int32(k) + after
		switch {
		case k > 0 && p.compareLooks(p.looks[looked[k-1]], p.looks[i]) == 0:
		case len(parts) == 0:
			parts = split{class}
		default:
			parts = append(parts, p.newClass(int(at)))
		}
		if to := parts[len(parts)-1]; to != class {
			p.size[class]--
			p.join(i, to)
		}
	}
	// First place the types before the rest, then, from the end, the types after it.
	for k, i := range looked {
		if p.compareLooks(p.looks[i], nil) > 0 {
			break
		}
		p.put(i, start+int32(k))
	}
	for k, i := range slices.Backward(looked) {
		if p.compareLooks(p.looks[i], nil) <= 0 {
			if rest > 0 {
				p.start[class] = start + int32(k) + 1
			}
			break
		}
		p.put(i, start+rest+int32(k))
	}
	for _, i := range looked {
		p.looks[i] = nil
	}
	return parts
}

// compareLooks compares two types of a class by their references. References that the
// round does not look at lead to the largest part.
func (p *partition) compareLooks(a, b []ref) int {
	for len(a) > 0 || len(b) > 0 {
		p.meter.Step(1)
		var c int
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].n < b[0].n:
			c, a = cmp.Compare(a[0].at, a[0].most), a[1:]
		case len(a) == 0 || b[0].n < a[0].n:
			c, b = cmp.Compare(b[0].most, b[0].at), b[1:]
		default:
			c, a, b = cmp.Compare(a[0].at, b[0].at), a[1:], b[1:]
		}
		if c != 0 {
			return c
		}
	}
	return 0
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
		members := p.order[next:][:p.size[c]]
		next += p.size[c]
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
	at := slices.Repeat([]int{Void}, len(p.start)) // position of the first of each class
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
