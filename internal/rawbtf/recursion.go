// SPDX-License-Identifier: Apache-2.0

package rawbtf

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/limits"
)

// CheckRecursion returns an error if code that follows all references of types by recursion could fill its stack:
// cilium/ebpf does, and Go ends a process whose stack is full. The views are vmlinux's and those of modules on top of it. What
// recurses there, and what bounds it:
//
//   - alignof and coreAreTypesCompatible of package btf stop at a struct or union, so there must be one in every cycle, and not too
//     many other types in a row;
//   - inflateType, copyType and visitInPostorder visit a type once, in an order of their own. No path through types can be longer
//     than the heaviest one through their strongly connected components;
//   - coreTypesMatch visits a pair of types once, which the engine bounds ([limits.Pairs]).
func CheckRecursion(ctx context.Context, views ...*BTF) error {
	longest := 0 // of the views before
	for i, b := range views {
		s := scan{b: b, meter: limits.NewMeter(ctx, math.MaxInt64, "steps")}
		row, cyclic := s.longest(btfenc.Kind.IsComposite)
		if err := s.meter.Err(); err != nil {
			return err
		}
		switch {
		case cyclic != 0:
			t := b.Type(cyclic)
			return fmt.Errorf("cilium/ebpf cannot follow its types: type %d (%s) leads back to itself without a struct or union", cyclic, t.Kind())
		case row > limits.TypesInRow:
			return fmt.Errorf("cilium/ebpf cannot follow its types: more than %d types in a row without a struct or union", limits.TypesInRow)
		}
		path := len(b.starts)
		if longest+path > limits.TypePath { // else it is no use to look
			path, _ = s.longest(func(btfenc.Kind) bool { return false })
		}
		if err := s.meter.Err(); err != nil {
			return err
		}
		if i == 0 {
			longest = path
		}
		if i > 0 && longest+path > limits.TypePath || longest > limits.TypePath {
			return fmt.Errorf("cilium/ebpf cannot follow its types: more than %d types that lead from one to the next", limits.TypePath)
		}
	}
	return nil
}

// scan looks for long paths among the types of a blob, without those of its base, which do not lead back. It finds strongly
// connected components by Tarjan's algorithm.
type scan struct {
	b     *BTF
	meter *limits.Meter

	order []uint32 // by type: when it was met, from 1
	low   []uint32 // by type: the earliest that it is known to lead to, among those not in a component yet
	path  []uint32 // by type: the longest path from it, once its component is known
	open  []uint32 // types that are not in a component yet
	todo  []step   // from a root to where the scan is
}

// step is a type and which of its references is next.
type step struct{ typ, ref uint32 }

// longest returns an upper bound of how many types a path has, and a type that leads back to itself, or 0. Paths end at types of the
// kinds for which stop is true.
func (s *scan) longest(stop func(btfenc.Kind) bool) (longest int, cyclic btfenc.TypeID) {
	n := len(s.b.starts)
	s.order, s.low, s.path = zeroed(s.order, n), zeroed(s.low, n), zeroed(s.path, n)
	s.open, s.todo = s.open[:0], s.todo[:0]
	met := uint32(0)
	meet := func(i uint32) {
		met++
		s.order[i], s.low[i] = met, met
		s.open, s.todo = append(s.open, i), append(s.todo, step{i, 0})
	}
	for root := range s.b.starts {
		if s.order[root] != 0 {
			continue
		}
		meet(uint32(root))
		for len(s.todo) > 0 && s.meter.Step(1) {
			at := &s.todo[len(s.todo)-1]
			i := at.typ
			t := s.b.Type(s.b.first + btfenc.TypeID(i))
			if !stop(t.Kind()) && at.ref < t.refs() {
				id := t.reference(at.ref)
				at.ref++
				if id < s.b.first {
					continue
				}
				switch to := uint32(id - s.b.first); {
				case s.order[to] == 0:
					meet(to)
				case s.path[to] == 0: // not in a component
					s.low[i] = min(s.low[i], s.order[to])
					if to == i {
						cyclic = id
					}
				}
				continue
			}
			s.todo = s.todo[:len(s.todo)-1]
			if len(s.todo) > 0 {
				up := s.todo[len(s.todo)-1].typ
				s.low[up] = min(s.low[up], s.low[i])
			}
			if s.low[i] == s.order[i] {
				from := len(s.open) - 1
				for s.open[from] != i {
					from--
				}
				if len(s.open)-from > 1 {
					cyclic = s.b.first + btfenc.TypeID(i)
				}
				longest = max(longest, s.component(s.open[from:], stop))
				s.open = s.open[:from]
			}
		}
	}
	return longest, cyclic
}

// component notes, for the types of a strongly connected component, the longest path from them: through all of them, and on.
func (s *scan) component(types []uint32, stop func(btfenc.Kind) bool) int {
	on := uint32(0)
	for _, i := range types {
		t := s.b.Type(s.b.first + btfenc.TypeID(i))
		if stop(t.Kind()) {
			continue
		}
		for r := range t.refs() {
			if id := t.reference(r); id >= s.b.first {
				on = max(on, s.path[id-s.b.first]) // 0 for those of the component
			}
		}
		s.meter.Step(int(t.refs()))
	}
	on += uint32(len(types))
	for _, i := range types {
		s.path[i] = on
	}
	return int(on)
}

func zeroed(l []uint32, n int) []uint32 {
	l = slices.Grow(l[:0], n)[:n]
	clear(l)
	return l
}

// refs returns how many types a type refers to, void included.
func (t *Type) refs() uint32 {
	s := t.Kind().Shape()
	if len(s.Elem) == 0 {
		return uint32(s.Refs(0))
	}
	return uint32(s.Refs(int(t.Vlen())))
}

// reference returns what a type refers to, by its number in the record.
func (t *Type) reference(i uint32) btfenc.TypeID {
	s := t.Kind().Shape()
	if s.Third == btfenc.Ref {
		if i == 0 {
			return t.Ref()
		}
		i--
	}
	for at, w := range s.Extra {
		if w == btfenc.Ref {
			if i == 0 {
				return btfenc.TypeID(t.extra(uint32(at)))
			}
			i--
		}
	}
	n := uint32(len(s.Elem)) // of which one is a reference
	return btfenc.TypeID(t.extra(uint32(len(s.Extra)) + n*i + uint32(slices.Index(s.Elem, btfenc.Ref))))
}
