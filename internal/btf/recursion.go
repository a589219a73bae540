// SPDX-License-Identifier: Apache-2.0

package btf

import (
	"context"
	"fmt"
	"math"

	"github.com/btfgen/btfgen/internal/limits"
)

// CheckRecursion returns an error if code that follows all references of types by
// recursion could overflow its stack. cilium/ebpf is such code, and Go ends a process
// whose stack overflows. The views are those of vmlinux and of modules on top of it.
// These functions of package btf of cilium/ebpf recurse:
//
//   - alignof and coreAreTypesCompatible stop at a struct or union. So every cycle needs
//     one, and no path without one may be long.
//   - inflateType, copyType and visitInPostorder visit a type once, in an order of their
//     own. No path is longer than the heaviest one through the strongly connected
//     components.
//   - coreTypesMatch visits a pair of types once, which the engine bounds ([limits.Pairs]).
func CheckRecursion(ctx context.Context, views ...*BTF) error {
	longest := 0 // longest path in the first view
	for i, b := range views {
		meter := limits.NewMeter(ctx, math.MaxInt64, "steps")
		row, cyclic := b.longestPath(meter, Kind.IsComposite)
		path := len(b.starts)
		if longest+path > limits.TypePath { // fewer types have no path that is too long
			path, _ = b.longestPath(meter, func(Kind) bool { return false })
		}
		problem := ""
		switch t := b.Type(cyclic); {
		case meter.Err() != nil:
			return meter.Err()
		case cyclic != 0:
			problem = fmt.Sprintf("type %d (%s) leads back to itself without a struct or union", cyclic, t.Kind())
		case row > limits.TypesInRow:
			problem = fmt.Sprintf("more than %d types in a row without a struct or union", limits.TypesInRow)
		case longest+path > limits.TypePath:
			problem = fmt.Sprintf("more than %d types that lead from one to the next", limits.TypePath)
		}
		if problem != "" {
			return fmt.Errorf("cilium/ebpf cannot follow its types: %s", problem)
		}
		if i == 0 {
			longest = path
		}
	}
	return nil
}

// longestPath returns an upper bound of the number of own types on a path, and a type
// that leads back to itself, or 0. Paths end at types of kinds for which stop is true.
// It counts all types of a strongly connected component, which it finds by Tarjan's
// algorithm. The types of the base do not refer to b's own.
func (b *BTF) longestPath(meter *limits.Meter, stop func(Kind) bool) (longest int, cyclic TypeID) {
	n := len(b.starts)
	v := visits{b: b, stop: stop, order: make([]uint32, n), low: make([]uint32, n), path: make([]uint32, n)}
	for root := range uint32(n) {
		if v.order[root] == 0 {
			v.enter(root)
		}
		for len(v.frames) > 0 && meter.Step(1) {
			if !v.follow() {
				v.leave()
			}
		}
	}
	return v.longest, v.cyclic
}

// visits is the state of Tarjan's algorithm on the own types of a view, which it numbers from 0.
type visits struct {
	b    *BTF
	stop func(Kind) bool

	visited uint32
	order   []uint32 // number of each type's visit, from 1; MaxUint32 once the component is complete
	low     []uint32 // earliest visit that each type is known to lead to
	path    []uint32 // longest known path from each type, or from its component
	open    []uint32 // visited types whose component is not complete
	frames  []visit  // types that are being visited
	refs    []TypeID // their references

	longest int
	cyclic  TypeID
}

// visit is a type that is being visited.
type visit struct {
	typ         uint32
	first, next int // its references in visits.refs: the first one, and the next one to follow
}

// enter starts the visit of a type.
func (v *visits) enter(i uint32) {
	v.visited++
	v.order[i], v.low[i] = v.visited, v.visited
	v.open, v.frames = append(v.open, i), append(v.frames, visit{i, len(v.refs), len(v.refs)})
	if t := v.b.Type(v.b.first + TypeID(i)); !v.stop(t.Kind()) {
		for id := range t.Refs() {
			if id >= v.b.first {
				v.refs = append(v.refs, id)
			}
		}
	}
}

// follow follows the next reference of the current type. It returns false if there is none.
func (v *visits) follow() bool {
	f := &v.frames[len(v.frames)-1]
	if f.next == len(v.refs) {
		return false
	}
	i, to := f.typ, uint32(v.refs[f.next]-v.b.first)
	f.next++
	if v.order[to] == 0 {
		v.enter(to) // leave notes the result in i
		return true
	}
	v.low[i], v.path[i] = min(v.low[i], v.order[to]), max(v.path[i], v.path[to])
	if to == i {
		v.cyclic = v.b.first + TypeID(i)
	}
	return true
}

// leave ends the visit of the current type, and completes its component if it was the first visited type of it.
func (v *visits) leave() {
	f := v.frames[len(v.frames)-1]
	i := f.typ
	v.refs, v.frames = v.refs[:f.first], v.frames[:len(v.frames)-1]
	if v.low[i] == v.order[i] {
		v.complete(i)
	}
	if len(v.frames) > 0 {
		up := v.frames[len(v.frames)-1].typ
		v.low[up], v.path[up] = min(v.low[up], v.low[i]), max(v.path[up], v.path[i])
	}
}

// complete closes the component that starts at type i: all open types from i on.
func (v *visits) complete(i uint32) {
	from, beyond := len(v.open), uint32(0) // beyond: the longest path from the component
	for done := false; !done; done = v.open[from] == i {
		from--
		beyond = max(beyond, v.path[v.open[from]])
	}
	component := v.open[from:]
	if len(component) > 1 {
		v.cyclic = v.b.first + TypeID(i)
	}
	path := beyond + uint32(len(component))
	for _, k := range component {
		v.order[k], v.path[k] = math.MaxUint32, path
	}
	v.longest, v.open = max(v.longest, int(path)), v.open[:from]
}
