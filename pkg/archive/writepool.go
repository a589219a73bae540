// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btfa"
)

// pool holds the distinct definitions of all kernels, and the layouts made of
// them. It is the
// writer's side; a reader has an Archive.
type pool struct {
	slots   []poolSlot // sorted by slot
	index   map[slot]int
	layouts []poolLayout
}

// poolSlot is the definitions that were ever seen in a slot.
type poolSlot struct {
	slot
	variants []variant // in the order of the first layout that has each
}

// variant is one definition: a shape, and the numbers that fill it.
type variant struct {
	shape string // equal for definitions that differ by numbers only
	nums  []uint64
	nodes []node
}

// poolLayout says which definition each slot has in one BTF.
type poolLayout struct {
	bigEndian bool
	variants  []int32 // by slot; noVariant if nothing is in it
}

// layoutDefs is one BTF, cut into definitions.
type layoutDefs struct {
	defs      []definition
	bigEndian bool
}

// newPool builds the pool of some distinct BTFs.
func newPool(ctx context.Context, layouts []layoutDefs) (*pool, error) {
	p := &pool{index: make(map[slot]int)}
	for _, l := range layouts {
		for _, d := range l.defs {
			if _, ok := p.index[d.slot]; !ok {
				p.index[d.slot] = 0
				p.slots = append(p.slots, poolSlot{slot: d.slot})
			}
		}
	}
	slices.SortFunc(p.slots, func(a, b poolSlot) int { return compareSlots(a.slot, b.slot) })
	for i := range p.slots {
		p.index[p.slots[i].slot] = i
	}
	seen := make(map[variantKey]int32)
	for _, l := range layouts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		lay := poolLayout{l.bigEndian, slices.Repeat([]int32{btfa.NoVariant}, len(p.slots))}
		for _, d := range l.defs {
			s := p.index[d.slot]
			lay.variants[s] = p.variant(s, d.nodes, seen)
		}
		p.layouts = append(p.layouts, lay)
	}
	return p, nil
}

// variantKey tells definitions of a slot apart.
type variantKey struct {
	slot        int
	shape, nums string
}

// variant returns the number of a definition in its slot, adding it if it is
// new.
func (p *pool) variant(s int, nodes []node, seen map[variantKey]int32) int32 {
	v := variant{shape: p.shape(nodes), nums: numbers(nodes), nodes: nodes}
	var b []byte
	for _, x := range v.nums {
		b = binary.AppendUvarint(b, x)
	}
	k := variantKey{s, v.shape, string(b)}
	at, ok := seen[k]
	if !ok {
		at = int32(len(p.slots[s].variants))
		seen[k] = at
		p.slots[s].variants = append(p.slots[s].variants, v)
	}
	return at
}

// shape returns all of a definition that is not a number, for comparison.
func (p *pool) shape(nodes []node) string {
	var b []byte
	for i := range nodes {
		n := &nodes[i]
		flag := byte(0)
		if n.flag {
			flag = 1
		}
		b = append(b, byte(n.kind), flag)
		b = binary.AppendUvarint(b, uint64(len(n.fields)))
		for _, f := range n.fields {
			b = append(append(b, f.Name...), 0)
			if n.kind.IsComposite() && n.flag {
				b = append(b, byte(f.Lo>>24))
			}
		}
		for _, r := range n.refs {
			v := r.node
			if v == refSlot {
				v = len(nodes) + p.index[*r.slot]
			}
			b = binary.AppendVarint(b, int64(v))
		}
	}
	return string(b)
}

// numbers returns the numbers of a definition, node by node: bit offsets of
// members, values of enumerators, the number of elements or the encoding word,
// then the size. Sizes of structs and unions count bits, so that they move
// along with the offsets.
func numbers(nodes []node) []uint64 {
	var nums []uint64
	for i := range nodes {
		n := &nodes[i]
		switch n.kind {
		case btf.KindStruct, btf.KindUnion:
			for _, f := range n.fields {
				off := f.Lo
				if n.flag {
					off &= 0xffffff
				}
				nums = append(nums, uint64(off))
			}
			nums = append(nums, uint64(n.size)*8)
		case btf.KindEnum, btf.KindEnum64, btf.KindInt:
			for _, f := range n.fields {
				nums = append(nums, uint64(f.Hi)<<32|uint64(f.Lo))
			}
			nums = append(nums, uint64(n.size))
		case btf.KindArray, btf.KindFunc, btf.KindVar:
			nums = append(nums, uint64(n.fields[0].Lo))
		case btf.KindFloat:
			nums = append(nums, uint64(n.size))
		}
	}
	return nums
}
