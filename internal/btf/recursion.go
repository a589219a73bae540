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
	longest := 0 // in the first view
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
	type frame struct {
		typ         uint32
		first, next int // of its references, in refs
	}
	var (
		n       = len(b.starts)
		order   = make([]uint32, n) // by type: the number of the visit, from 1; MaxUint32 once the component is complete
		low     = make([]uint32, n) // by type: the earliest visit that it is known to lead to
		path    = make([]uint32, n) // by type: the longest known path from its component, or from it
		open    []uint32            // visited types whose component is not complete
		frames  []frame             // types that are being visited, and their references
		refs    []TypeID
		visited uint32
	)
	visit := func(i uint32) {
		visited++
		order[i], low[i] = visited, visited
		open, frames = append(open, i), append(frames, frame{i, len(refs), len(refs)})
		if t := b.Type(b.first + TypeID(i)); !stop(t.Kind()) {
			for id := range t.Refs() {
				if id >= b.first {
					refs = append(refs, id)
				}
			}
		}
	}
	for root := range uint32(n) {
		if order[root] == 0 {
			visit(root)
		}
		for len(frames) > 0 && meter.Step(1) {
			f := &frames[len(frames)-1]
			i := f.typ
			if f.next < len(refs) {
				to := uint32(refs[f.next] - b.first)
				f.next++
				if order[to] == 0 {
					visit(to)
					continue
				}
				low[i], path[i] = min(low[i], order[to]), max(path[i], path[to])
				if to == i {
					cyclic = b.first + TypeID(i)
				}
				continue
			}
			refs, frames = refs[:f.first], frames[:len(frames)-1]
			if low[i] == order[i] {
				from, on := len(open), uint32(0)
				for done := false; !done; done = open[from] == i {
					from--
					on = max(on, path[open[from]])
				}
				on += uint32(len(open) - from)
				if len(open)-from > 1 {
					cyclic = b.first + TypeID(i)
				}
				for _, k := range open[from:] {
					order[k], path[k] = math.MaxUint32, on
				}
				longest, open = max(longest, int(on)), open[:from]
			}
			if len(frames) > 0 {
				up := frames[len(frames)-1].typ
				low[up], path[up] = min(low[up], low[i]), max(path[up], path[i])
			}
		}
	}
	return longest, cyclic
}
