// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"math"
	"slices"

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
	numbers []uint64 // numbers of all types of the shape, in the order of eachNumber
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

// fieldsOf returns whether types of a kind have any number of fields, which have names,
// and otherwise how many fields they have.
func fieldsOf(k btf.Kind) (named bool, unnamed int) {
	if k == btf.KindInt || k == btf.KindArray || k == btf.KindFunc || k == btf.KindVar {
		unnamed = 1
	}
	return len(k.Shape().Elem) > 0, unnamed
}

// hasBits reports whether the fields of a type have the size of a bitfield in the upper
// 8 bits of Lo. It belongs to the shape.
func hasBits(t *canonical.Type) bool { return t.Flag && t.Kind.IsComposite() }

// eachNumber replaces each number of a type by the result of f: the values of the
// fields, and then the size. Sizes of structs and unions count bits, because they change
// together with the offsets.
func eachNumber(t *canonical.Type, f func(x uint64, size bool) uint64) {
	for i := 0; t.Kind != btf.KindFuncProto && i < len(t.Fields); i++ {
		field, bits := &t.Fields[i], uint32(0)
		if hasBits(t) {
			bits = field.Lo &^ 0xffffff
		}
		x := f(uint64(field.Hi)<<32|uint64(field.Lo-bits), false)
		field.Lo, field.Hi = bits|uint32(x), uint32(x>>32)
	}
	if t.Kind.Shape().Third == btf.Size {
		unit := uint64(1)
		if t.Kind.IsComposite() {
			unit = 8
		}
		t.Size = uint32(f(uint64(t.Size)*unit, true) / unit)
	}
}

// inRange checks a number of a type.
func inRange(t *canonical.Type, x uint64, size bool) bool {
	switch {
	case size && t.Kind.IsComposite():
		return x%8 == 0 && x/8 <= math.MaxUint32
	case hasBits(t), t.Kind == btf.KindFunc:
		return x < 1<<24
	case t.Kind == btf.KindEnum && !size:
		return x == uint64(int64(int32(x)))
	case t.Kind == btf.KindEnum64 && !size:
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
	for _, l := range slices.Backward(chain) {
		for _, ch := range p.layouts[l].changes {
			variants[ch.slot] = ch.variant
		}
	}
	return variants
}

func (p *pool) emptyLayout() []int32 { return slices.Repeat([]int32{btfa.NoVariant}, len(p.slots)) }
