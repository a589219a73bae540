// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"math"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/btf/canonical"
	"github.com/btfgen/btfgen/internal/btfa"
)

// pool is the types of all kernels of an archive, each distinct definition once.
// Open decodes it from a file, and Write builds it from BTF and encodes it.
type pool struct {
	slots   []slot // sorted by name; types with one name are in the order of their BTF
	layouts []layout
}

// slot is a place for a definition in a layout. Types refer to each other by slot,
// so a definition stays the same when a type that it refers to changes.
type slot struct {
	name     string // empty for an anonymous type that no named type leads to
	variants []variant
}

// variant is one definition: a named type and the anonymous types inside it.
type variant struct {
	// shape has the type of the slot, without its name, and then the anonymous types
	// in the order of the first reference to each. Their numbers are 0. References
	// are positions in the shape, or slots (slotRef). Variants of a slot that differ
	// only in their numbers have the same slice.
	shape   []canonical.Type
	numbers []uint64 // of all types of the shape, as takeNumbers returns them
}

// sameShape reports whether two variants of a slot differ only in their numbers.
func (v *variant) sameShape(o *variant) bool { return &v.shape[0] == &o.shape[0] }

// slotRef returns the reference to a slot, and refSlot the slot of such a
// reference, which is less than canonical.Void.
func slotRef(slot int) int { return canonical.Void - 1 - slot }
func refSlot(ref int) int  { return canonical.Void - 1 - ref }

// layout is the BTF of one or more kernels.
type layout struct {
	parent    int32 // the layout that changes are made to, or -1 for the empty one
	bigEndian bool
	changes   []change
}

// change puts a variant, or btfa.NoVariant, into a slot.
type change struct{ slot, variant int32 }

// inArchive reports whether minimized BTF has types of a kind.
func inArchive(k btf.Kind) bool {
	return int(k) < btf.NumKinds && k != btf.KindVoid && k != btf.KindDatasec && k != btf.KindDeclTag
}

// countFields returns whether types of a kind have any number of fields, which have
// names, or else how many they have, without names.
func countFields(k btf.Kind) (named bool, unnamed int) {
	s := k.Shape()
	switch {
	case len(s.Elem) > 0:
		return true, 0
	case k == btf.KindInt, k == btf.KindArray, k == btf.KindFunc, k == btf.KindVar:
		return false, 1
	}
	return false, 0
}

// numbersOf describes the numbers of types of a kind: the values of its fields, if
// they have values, and the size, if it has one, as a multiple of 1/unit bytes. Sizes
// of structs and unions count bits, because they change together with the offsets.
func numbersOf(k btf.Kind) (values, size bool, unit uint64) {
	if unit = 1; k.IsComposite() {
		unit = 8
	}
	return k != btf.KindFuncProto, k.Shape().Third == btf.Size, unit
}

// countNumbers returns how many numbers a type has.
func countNumbers(t *canonical.Type) int {
	n := 0
	values, size, _ := numbersOf(t.Kind)
	if values {
		n = len(t.Fields)
	}
	if size {
		n++
	}
	return n
}

// hasBits reports whether the values of a type's fields have the size of a bitfield
// in their upper 8 bits. It is no number.
func hasBits(t *canonical.Type) bool { return t.Flag && t.Kind.IsComposite() }

// takeNumbers appends the numbers of a type and sets them to 0.
func takeNumbers(t *canonical.Type, numbers []uint64) []uint64 {
	values, size, unit := numbersOf(t.Kind)
	for i := 0; values && i < len(t.Fields); i++ {
		f := &t.Fields[i]
		bits := uint32(0)
		if hasBits(t) {
			bits = f.Lo &^ 0xffffff
		}
		numbers = append(numbers, uint64(f.Hi)<<32|uint64(f.Lo-bits))
		f.Lo, f.Hi = bits, 0
	}
	if size {
		numbers = append(numbers, uint64(t.Size)*unit)
		t.Size = 0
	}
	return numbers
}

// putNumbers sets the numbers of a type and returns the rest of numbers.
func putNumbers(t *canonical.Type, numbers []uint64) []uint64 {
	values, size, unit := numbersOf(t.Kind)
	for i := 0; values && i < len(t.Fields); i++ {
		t.Fields[i].Lo |= uint32(numbers[0])
		t.Fields[i].Hi = uint32(numbers[0] >> 32)
		numbers = numbers[1:]
	}
	if size {
		t.Size = uint32(numbers[0] / unit)
		numbers = numbers[1:]
	}
	return numbers
}

// inRange checks a number of a type. The last one of a type with a size is the size.
func inRange(t *canonical.Type, x uint64, last bool) bool {
	switch _, size, unit := numbersOf(t.Kind); {
	case size && last:
		return x%unit == 0 && x/unit <= math.MaxUint32
	case hasBits(t), t.Kind == btf.KindFunc:
		return x < 1<<24
	case t.Kind == btf.KindEnum:
		return x == uint64(int64(int32(x)))
	case t.Kind == btf.KindEnum64:
		return true
	}
	return x <= math.MaxUint32
}

// variantsOf returns the variant in each slot of a layout.
func (p *pool) variantsOf(layout int) []int32 {
	var chain []int32
	for l := int32(layout); l >= 0; l = p.layouts[l].parent {
		chain = append(chain, l)
	}
	variants := p.emptyLayout()
	for i := range chain {
		for _, ch := range p.layouts[chain[len(chain)-1-i]].changes {
			variants[ch.slot] = ch.variant
		}
	}
	return variants
}

func (p *pool) emptyLayout() []int32 {
	variants := make([]int32, len(p.slots))
	for i := range variants {
		variants[i] = btfa.NoVariant
	}
	return variants
}
