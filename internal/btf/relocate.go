// SPDX-License-Identifier: Apache-2.0

package btf

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Relocate returns the split BTF of a module that was encoded on top of a distilled base (.BTF.base) as split BTF on top of base. The
// distilled base has the few types of vmlinux that the module uses, without members. Each is matched with a type of base by name and kind,
// and by size where the module contains it by value or where base has several, as in btf__relocate of libbpf 1.5 (btf_relocate.c). It is an
// error if a type has no match, or several.
func Relocate(ctx context.Context, split, distilled []byte, base *BTF) ([]byte, error) {
	var dist, mod BTF
	if err := dist.Load(ctx, distilled, nil); err != nil {
		return nil, fmt.Errorf("distilled base: %w", err)
	}
	if err := mod.Load(ctx, split, &dist); err != nil {
		return nil, err
	}
	if dist.big != base.big {
		return nil, errors.New("distilled base: byte order differs from the kernel's")
	}
	r := relocation{dist: &dist, mod: &mod, base: base, types: make([]TypeID, dist.NumTypes()), names: map[uint32]uint32{0: 0}}
	r.markEmbedded()
	if err := r.match(ctx); err != nil {
		return nil, err
	}
	return r.rewrite()
}

// relocation is one call of Relocate.
type relocation struct {
	dist, mod, base *BTF
	types           []TypeID          // of base, by ID of the distilled base
	names           map[uint32]uint32 // offsets of names of base, by those of the distilled base
	embedded        []bool            // by ID of the distilled base: the module contains it by value
}

// markEmbedded finds the structs and unions of the distilled base that structs and unions of the module contain by value.
func (r *relocation) markEmbedded() {
	r.embedded = make([]bool, r.dist.NumTypes())
	for i := range TypeID(len(r.mod.starts)) {
		t := r.mod.Type(r.mod.first + i)
		if k := t.Kind(); k != KindStruct && k != KindUnion {
			continue
		}
		for m := range int(t.Vlen()) {
			id := TypeID(r.mod.types[t.off+hdrWords+uint32(3*m)+1])
			for range len(r.embedded) + len(r.mod.starts) { // modifiers may form a circle
				in := r.mod.Type(id)
				if id < r.mod.first {
					r.embedded[id] = true
				}
				switch in.Kind() {
				case KindConst, KindVolatile, KindRestrict, KindTypeTag, KindTypedef:
					id = TypeID(in.size)
					continue
				case KindArray:
					id = TypeID(in.b.types[in.off+hdrWords])
					continue
				}
				break
			}
		}
	}
}

// match finds the type of base for each type of the distilled base.
func (r *relocation) match(ctx context.Context) error {
	wanted := make(map[string][]TypeID)
	for id := TypeID(1); int(id) < len(r.types); id++ {
		t := r.dist.Type(id)
		wanted[string(t.Name())] = append(wanted[string(t.Name())], id)
	}
	found := make([][]TypeID, len(r.types))
	for id := range TypeID(r.base.NumTypes()) {
		if id%walkChunk == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		t := r.base.Type(id)
		for _, d := range wanted[string(t.Name())] {
			if want := r.dist.Type(d); sameKind(&want, &t) {
				found[d] = append(found[d], id)
			}
		}
	}
	for id := TypeID(1); int(id) < len(r.types); id++ {
		d := r.dist.Type(id)
		all := found[id]
		if r.embedded[id] || len(all) > 1 {
			all = slices.DeleteFunc(all, func(i TypeID) bool {
				t := r.base.Type(i)
				return d.Kind() != KindFwd && t.size != d.size
			})
		}
		switch {
		case len(all) == 0:
			return fmt.Errorf("distilled base: the kernel has no %s %s of its size", d.Kind(), d.Name())
		case len(all) > 1:
			return fmt.Errorf("distilled base: the kernel has several types for %s %s: %d and %d", d.Kind(), d.Name(), all[0], all[1])
		}
		t := r.base.Type(all[0])
		r.types[id], r.names[d.NameOff] = all[0], t.NameOff
	}
	return nil
}

// sameKind reports whether a type of the kernel can be one of the distilled base with its name.
func sameKind(d, t *Type) bool {
	switch k := t.Kind(); d.Kind() {
	case KindInt:
		return k == KindInt && d.size == t.size && d.b.types[d.off+hdrWords] == t.b.types[t.off+hdrWords]
	case KindFloat:
		return k == KindFloat && d.size == t.size
	case KindEnum, KindEnum64:
		return (k == KindEnum || k == KindEnum64) && d.size == t.size
	case KindStruct, KindUnion:
		return k == d.Kind()
	case KindFwd:
		union := d.info>>31 == 1
		return k == KindFwd && t.info>>31 == d.info>>31 || k == KindStruct && !union || k == KindUnion && union
	}
	return false
}

// rewrite returns the module with the types and names of base.
func (r *relocation) rewrite() ([]byte, error) {
	out := NewBuilder(r.base.Order())
	var failed error
	word := func(kind Word, v uint32) uint32 {
		switch {
		case kind == Name && v >= r.mod.strOff:
			return v - r.mod.strOff + r.base.strEnd()
		case kind == Name:
			to, ok := r.names[v]
			if !ok {
				failed = fmt.Errorf("distilled base: the string %q is no type's name", r.mod.Name(v))
			}
			return to
		case kind == Ref && v >= uint32(r.mod.first):
			return v - uint32(r.mod.first) + uint32(r.base.NumTypes())
		case kind == Ref:
			return uint32(r.types[v])
		}
		return v
	}
	for i, start := range r.mod.starts {
		end := len(r.mod.types)
		if i+1 < len(r.mod.starts) {
			end = int(r.mod.starts[i+1])
		}
		rec := r.mod.types[start:end]
		shape := Kind(rec[1] >> 24 & 0x7f).Shape()
		out.Word(word(Name, rec[0]), rec[1], word(shape.Third, rec[2]))
		for j, v := range rec[hdrWords:] {
			switch n := len(shape.Extra); {
			case j < n:
				v = word(shape.Extra[j], v)
			case len(shape.Elem) > 0:
				v = word(shape.Elem[(j-n)%len(shape.Elem)], v)
			}
			out.Word(v)
		}
	}
	out.strs = r.mod.strs
	return out.Bytes(), failed
}
