// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/btfa"
)

var (
	errContent = fmt.Errorf("BTF would have more than %d bytes", btfa.MaxContent)
	errTypes   = fmt.Errorf("BTF would have more than %d types", btfa.MaxTypes)
	errEmpty   = errors.New("a type refers to one that the BTF does not have")
)

// layoutBTF makes the BTF of a layout.
func (p *pool) layoutBTF(layout int) ([]byte, error) {
	types, err := p.types(p.variantsOf(layout))
	if err != nil {
		return nil, err
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if p.layouts[layout].bigEndian {
		order = binary.BigEndian
	}
	// Merge needs no deadline, because there are at most btfa.MaxTypes types.
	merged, err := canonical.Merge(context.Background(), types)
	if err != nil {
		return nil, err
	}
	return canonical.Write(merged, order), nil
}

// types returns the types of a layout: those of the variant in each slot, slot after
// slot.
func (p *pool) types(variants []int32) ([]*canonical.Type, error) {
	starts, n := p.starts(variants)
	if n > btfa.MaxTypes {
		return nil, errTypes
	}
	types := make([]*canonical.Type, 0, n)
	content := 0
	for s, v := range variants {
		if v == btfa.NoVariant {
			continue
		}
		numbers := p.slots[s].variants[v].numbers
		for i, t := range p.slots[s].variants[v].shape {
			if i == 0 {
				t.Name, t.Copies, t.Order = p.slots[s].name, 1, s
			}
			t.Fields, t.Refs = slices.Clone(t.Fields), slices.Clone(t.Refs)
			if !resolve(t.Refs, starts, s) {
				return nil, errEmpty
			}
			eachNumber(&t, func(uint64, bool) (x uint64) {
				x, numbers = numbers[0], numbers[1:]
				return x
			})
			if content += contentOf(&t); content > btfa.MaxContent {
				return nil, errContent
			}
			types = append(types, &t)
		}
	}
	return types, nil
}

// starts returns the position of the first type of each slot among the types of a layout,
// -1 for slots without a variant, and the number of types.
func (p *pool) starts(variants []int32) (starts []int, n int) {
	starts = make([]int, len(p.slots))
	for s, v := range variants {
		if starts[s] = -1; v != btfa.NoVariant {
			starts[s] = n
			n += len(p.slots[s].variants[v].shape)
		}
	}
	return starts, n
}

// resolve makes positions of the references of a type in a slot: to types of its own slot,
// and to the first type of another one. It reports false if that slot is empty.
func resolve(refs, starts []int, slot int) bool {
	for i, r := range refs {
		switch {
		case r >= 0:
			refs[i] = starts[slot] + r
		case r != canonical.Void:
			if refs[i] = starts[refSlot(r)]; refs[i] < 0 {
				return false
			}
		}
	}
	return true
}

// contentOf returns the bytes that a type counts in btfa.MaxContent.
func contentOf(t *canonical.Type) int {
	n := 32 + len(t.Name) + 16*len(t.Fields)
	for i := range t.Fields {
		n += len(t.Fields[i].Name)
	}
	return n
}
