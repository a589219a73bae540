// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/canon"
)

var (
	errContent = fmt.Errorf("BTF would have more than %d bytes", btfa.MaxContent)
	errTypes   = fmt.Errorf("BTF would have more than %d types", btfa.MaxTypes)
	errEmpty   = errors.New("a type refers to one that the BTF does not have")
)

// layoutBTF makes the BTF of a layout.
func (a *Archive) layoutBTF(layout int) ([]byte, error) {
	types, err := a.types(a.variantsOf(layout))
	if err != nil {
		return nil, err
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if a.layouts[layout].bigEndian {
		order = binary.BigEndian
	}
	merged, err := canon.Merge(context.Background(), types) // which are no more than MaxTypes
	if err != nil {
		return nil, err
	}
	return canon.Write(merged, order), nil
}

// variantsOf returns the variant in each slot of a layout.
func (a *Archive) variantsOf(layout int) []int32 {
	var chain []int32
	for l := int32(layout); l >= 0; l = a.layouts[l].parent {
		chain = append(chain, l)
	}
	variants := slices.Repeat([]int32{btfa.NoVariant}, len(a.pool.slots))
	for _, l := range slices.Backward(chain) {
		for _, ch := range a.layouts[l].changes {
			variants[ch.slot] = ch.variant
		}
	}
	return variants
}

// types makes the types of a layout: the nodes of the variant in each slot,
// slot after slot.
func (a *Archive) types(variants []int32) ([]*canon.Type, error) {
	p := &a.pool
	at := make([]int, len(p.slots)) // position of the first node of each slot
	n := 0
	for s, v := range variants {
		if at[s] = btfa.NoVariant; v != btfa.NoVariant {
			at[s] = n
			n += int(p.shapes[p.variants[p.slots[s].first+v].shape].count)
		}
	}
	if n > btfa.MaxTypes {
		return nil, errTypes
	}
	types := make([]*canon.Type, 0, n)
	content := 0
	for s, v := range variants {
		if v == btfa.NoVariant {
			continue
		}
		variant := p.variants[p.slots[s].first+v]
		shape := p.shapes[variant.shape]
		numbers := p.numbers[variant.numbers:]
		for i := range shape.count {
			node := &p.nodes[shape.first+i]
			t := &canon.Type{Kind: node.kind, Flag: node.flag}
			if i == 0 {
				t.Name, t.Copies, t.Order = p.names[s], 1, s
			}
			if !p.resolve(t, node, at, at[s]) {
				return nil, errEmpty
			}
			p.name(t, node)
			numbers = fill(t, numbers)
			if content += size(t); content > btfa.MaxContent {
				return nil, errContent
			}
			types = append(types, t)
		}
	}
	return types, nil
}

func size(t *canon.Type) int {
	n := 32 + len(t.Name) + 16*len(t.Fields)
	for i := range t.Fields {
		n += len(t.Fields[i].Name)
	}
	return n
}

// resolve sets the references of a type, whose definition begins at position
// base. It reports false if one leads to an empty slot.
func (p *readPool) resolve(t *canon.Type, n *readNode, at []int, base int) bool {
	count := n.kind.Shape().Refs(int(n.count))
	t.Refs = make([]int, count)
	for i, r := range p.refs[n.refs:][:count] {
		switch {
		case r == btfa.ToVoid:
			t.Refs[i] = canon.Void
		case r&1 == 0:
			t.Refs[i] = base + int(r-btfa.ToFirst)/2
		default:
			if t.Refs[i] = at[(r-btfa.ToFirst)/2]; t.Refs[i] == btfa.NoVariant {
				return false
			}
		}
	}
	return true
}

// name sets the names of a type's fields, and the sizes of its bitfields.
func (p *readPool) name(t *canon.Type, n *readNode) {
	t.Fields = make([]canon.Field, n.count, n.count+1)
	for i, f := range p.fields[n.fields:][:n.count] {
		if f.name > 0 {
			t.Fields[i].Name = p.names[f.name-1]
		}
		t.Fields[i].Lo = uint32(f.bits) << 24
	}
}

// fill takes the numbers of a type off the list.
func fill(t *canon.Type, numbers []uint64) []uint64 {
	switch t.Kind {
	case btfenc.KindStruct, btfenc.KindUnion:
		for i := range t.Fields {
			t.Fields[i].Lo |= uint32(numbers[i])
		}
		numbers = numbers[len(t.Fields):]
		t.Size = uint32(numbers[0] / 8)
	case btfenc.KindEnum, btfenc.KindEnum64:
		for i := range t.Fields {
			t.Fields[i].Lo, t.Fields[i].Hi = uint32(numbers[i]), uint32(numbers[i]>>32)
		}
		numbers = numbers[len(t.Fields):]
		t.Size = uint32(numbers[0])
	case btfenc.KindInt:
		t.Fields = append(t.Fields, canon.Field{Lo: uint32(numbers[0])})
		t.Size = uint32(numbers[1])
		return numbers[2:]
	case btfenc.KindArray, btfenc.KindFunc, btfenc.KindVar:
		t.Fields = append(t.Fields, canon.Field{Lo: uint32(numbers[0])})
	case btfenc.KindFloat:
		t.Size = uint32(numbers[0])
	default:
		return numbers
	}
	return numbers[1:]
}
