// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Size is how large the BTF of a kernel is. Archives hold each definition of a type once.
type Size struct {
	Key kernel.Key
	BTF int // bytes of the BTF
	Own int // bytes of the definitions in it that no other kernel in the archive has, without names
}

// Sizes returns the sizes of all kernels, in the order of [Archive.Keys]. The error is that of [Archive.Kernels].
func (a *Archive) Sizes() ([]Size, error) {
	kernels, err := a.Kernels()
	if err != nil {
		return nil, err
	}
	kernelsOf := make([]int, len(a.pool.layouts)) // number of kernels with each layout
	for _, l := range a.layoutOf {
		kernelsOf[l]++
	}
	users := make([][]int, len(a.pool.slots)) // kernels, by slot and variant
	for i := range users {
		users[i] = make([]int, len(a.pool.slots[i].variants))
	}
	for l, n := range kernelsOf {
		for slot, v := range a.pool.variantsOf(l) {
			if v != btfa.NoVariant {
				users[slot][v] += n
			}
		}
	}
	sizes := make([]Size, len(kernels))
	for i, k := range kernels {
		sizes[i] = Size{Key: k.Key, BTF: len(k.BTF)}
		l, _ := a.Layout(k.Key)
		if kernelsOf[l] > 1 {
			continue
		}
		for slot, v := range a.pool.variantsOf(l) {
			if v != btfa.NoVariant && users[slot][v] == 1 {
				for _, t := range a.pool.slots[slot].variants[v].shape {
					shape := t.Kind.Shape()
					sizes[i].Own += 4 * (3 + len(shape.Extra) + len(shape.Elem)*len(t.Fields)) // BTF consists of words
				}
			}
		}
	}
	return sizes, nil
}
