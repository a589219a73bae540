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

// Merge makes types that cannot be told apart one, and puts them in their
// canonical order. It returns the types to write, their refs renumbered to
// positions in that order. It takes n log n steps and memory for n types with
// their references. The error is that of the context.
//
// Types are split into classes by their content, then again by the classes
// of what they refer to, until that tells no more of them apart. Classes are
// numbered by sorting, so the numbers do not depend on the order of the
// input.
func Merge(ctx context.Context, types []*Type) ([]*Type, error) {
	p := newPartition(ctx, types)
	p.byContent()
	splits := p.byRefs()
	if len(splits) > 0 {
		p.referrers()
	}
	for len(splits) > 0 && p.meter.Err() == nil {
		splits = p.round(splits)
	}
	if err := p.meter.Err(); err != nil {
		return nil, err
	}
	return p.representatives(), nil
}

// partition is types in classes, while they are being told apart. The classes
// are in their order, and that of two types never changes once they are in
// different ones: a round only splits classes.
//
// The first two rounds look at every type. A later one looks at those that
// refer to a class that the round before has split, and of its parts passes over
// the largest (Hopcroft's trick): what is not looked at refers to that. So a
// reference is looked at no more often than its target's class can halve.
type partition struct {
	types []*Type
	order []int32 // types, those of a class side by side
	place []int32 // in order, by type
	class []int32 // by type
	start []int32 // where in order a class begins
	size  []int32 // of a class

	by    []edge  // references by their target
	byEnd []int32 // by type: where in by those to it end
	looks [][]ref // by type: its references that a round looks at
	meter *limits.Meter
}

// edge is a reference: number ref of type from.
type edge struct{ from, ref int32 }

// ref is a reference whose target's class was split: where the target's new
// class begins, and where the largest does.
type ref struct{ n, at, most int32 }

// split is the parts that a class was split into, as classes.
type split []int32

func newPartition(ctx context.Context, types []*Type) *partition {
	p := &partition{types: types, place: make([]int32, len(types)), class: make([]int32, len(types))}
	p.meter = limits.NewMeter(ctx, math.MaxInt64, "steps")
	for i, o := range types {
		if o != nil {
			p.order = append(p.order, int32(i))
		}
	}
	return p
}

// target returns what reference r of a type leads to.
func (p *partition) target(r int) (t int32, ok bool) {
	if r == Void || p.types[r] == nil {
		return 0, false
	}
	return int32(r), true
}

// sort puts types into an order. Once the work must not go on it gives up soon.
func (p *partition) sort(l []int32, compare func(a, b int32) int) {
	slices.SortFunc(l, func(a, b int32) int {
		if !p.meter.Step(1) {
			return 0
		}
		return compare(a, b)
	})
}

// byContent makes a class of the types of each content.
func (p *partition) byContent() {
	keys := make([][]byte, len(p.types))
	var b []byte // of all keys
	for _, i := range p.order {
		from := len(b)
		b = p.types[i].AppendContent(b)
		keys[i] = b[from:len(b):len(b)]
		p.meter.Step(1 + len(p.types[i].Fields))
	}
	p.sort(p.order, func(a, b int32) int { return bytes.Compare(keys[a], keys[b]) })
	for at, i := range p.order {
		p.place[i] = int32(at)
		if at == 0 || !bytes.Equal(keys[i], keys[p.order[at-1]]) {
			p.newClass(at)
		}
		p.join(i, int32(len(p.start)-1))
	}
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

// byRefs splits each class by the classes of what its types refer to.
func (p *partition) byRefs() (splits []split) {
	rank := func(r int) int32 { // classes are still in the order of their numbers
		if t, ok := p.target(r); ok {
			return p.class[t] + 1
		}
		return 0
	}
	compare := func(a, b int32) int {
		x, y := p.types[a].Refs, p.types[b].Refs
		for i := range min(len(x), len(y)) {
			if c := cmp.Compare(rank(x[i]), rank(y[i])); c != 0 || !p.meter.Step(1) {
				return c
			}
		}
		return cmp.Compare(len(x), len(y))
	}
	// Ranks are those from before the first split.
	var cuts [][]int32 // by class, places where a part begins
	for c := range p.start {
		l := p.order[p.start[c]:][:p.size[c]]
		p.sort(l, compare)
		var cut []int32
		for i := 1; i < len(l); i++ {
			if compare(l[i-1], l[i]) != 0 {
				cut = append(cut, p.start[c]+int32(i))
			}
		}
		cuts = append(cuts, cut)
	}
	for at, i := range p.order {
		p.place[i] = int32(at)
	}
	for c, cut := range cuts {
		if len(cut) == 0 {
			continue
		}
		parts := split{int32(c)}
		end := p.start[c] + p.size[c]
		for k, from := range cut {
			to := end
			if k+1 < len(cut) {
				to = cut[k+1]
			}
			part := p.newClass(int(from))
			for _, i := range p.order[from:to] {
				p.size[c]--
				p.join(i, part)
			}
			parts = append(parts, part)
		}
		splits = append(splits, parts)
	}
	return splits
}

// referrers notes for each type what refers to it.
func (p *partition) referrers() {
	p.looks = make([][]ref, len(p.types))
	p.byEnd = make([]int32, len(p.types)+1)
	each := func(f func(t, from, n int32)) {
		for _, i := range p.order {
			for n, r := range p.types[i].Refs {
				if t, ok := p.target(r); ok {
					f(t, i, int32(n))
				}
			}
			p.meter.Step(1 + len(p.types[i].Refs))
		}
	}
	each(func(t, _, _ int32) { p.byEnd[t+1]++ })
	for i := range p.types {
		p.byEnd[i+1] += p.byEnd[i]
	}
	p.by = make([]edge, p.byEnd[len(p.types)])
	each(func(t, from, n int32) {
		p.by[p.byEnd[t]] = edge{from, n}
		p.byEnd[t]++
	})
}

// referrersOf returns the references to a type.
func (p *partition) referrersOf(t int32) []edge {
	from := int32(0)
	if t > 0 {
		from = p.byEnd[t-1]
	}
	return p.by[from:p.byEnd[t]]
}

// round splits classes by what the round before has split.
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
				by := p.referrersOf(t)
				for _, e := range by {
					if p.size[p.class[e.from]] == 1 {
						continue
					}
					if p.looks[e.from] == nil {
						looked = append(looked, e.from)
					}
					p.looks[e.from] = append(p.looks[e.from], ref{e.ref, p.start[c], most})
				}
				if !p.meter.Step(1 + len(by)) {
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

// splitClass splits a class, given those of its types that are looked at. Their
// looks are gone afterwards.
func (p *partition) splitClass(looked []int32) split {
	p.sort(looked, func(a, b int32) int { return p.compareLooks(p.looks[a], p.looks[b]) })
	class := p.class[looked[0]]
	start, size := p.start[class], p.size[class]
	rest := size - int32(len(looked)) // those that are not looked at stay a class, between the others
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
	// From the front those that come before the rest, from the end those after.
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

// compareLooks compares two types of a class by their references. One that is
// not looked at leads to the largest part.
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

// put exchanges a type with the one that has its place.
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

// representatives keeps one type of each class, or as many as were asked for,
// in the order of the classes. Types of one name are put in their own order.
func (p *partition) representatives() []*Type {
	var all []kept
	for next := int32(0); int(next) < len(p.order); {
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
			k.Refs[j] = Void
			if t, ok := p.target(r); ok {
				k.Refs[j] = at[p.class[t]]
			}
		}
	}
	return out
}
