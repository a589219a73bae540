// SPDX-License-Identifier: Apache-2.0

package btf

import (
	"context"
	"errors"
	"fmt"

	"github.com/btfgen/btfgen/internal/limits"
)

// Relocate returns the split BTF of a module that was encoded on top of a distilled base (.BTF.base) as split BTF on top of base. The
// distilled base has the few types of vmlinux that the module uses, without members. Relocate matches each with a type of base by the rules
// of libbpf and the kernel (btf_relocate.c), since a kernel has no BTF for a module whose distilled base it cannot relocate. It is an error if
// a type has no match, or several.
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
	if err := r.markEmbedded(ctx); err != nil {
		return nil, err
	}
	if err := r.match(ctx); err != nil {
		return nil, err
	}
	return r.rewrite()
}

// relocation is one call of Relocate.
type relocation struct {
	dist, mod, base *BTF
	types           []TypeID          // IDs in base, indexed by ID in the distilled base
	names           map[uint32]uint32 // offsets of names of base, by those of the distilled base
	embedded        []bool            // whether the module contains a type by value, indexed by ID in the distilled base
}

// markEmbedded finds the structs and unions of the distilled base that structs and unions of the module contain by value.
func (r *relocation) markEmbedded(ctx context.Context) error {
	r.embedded = make([]bool, r.dist.NumTypes())
	for i := range TypeID(len(r.mod.starts)) {
		if i%walkChunk == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		t := r.mod.Type(r.mod.first + i)
		if !t.Kind().IsComposite() {
			continue
		}
		for m := range t.Vlen() {
			in, err := r.contained(t.Member(m).Type)
			if err != nil {
				return fmt.Errorf("types: type %d (%s %s): %w", t.ID, t.Kind(), t.Name(), err)
			}
			if in.Kind().IsComposite() && in.ID < r.mod.first {
				r.embedded[in.ID] = true
			}
		}
	}
	return nil
}

// contained follows modifiers, typedefs and arrays.
func (r *relocation) contained(id TypeID) (Type, error) {
	for range limits.Modifiers {
		t, ok := r.mod.SkipMods(id)
		if !ok {
			break
		}
		if t.Kind() != KindArray {
			return t, nil
		}
		id = t.Array().Elem
	}
	return Type{}, ErrDepth
}

// match finds the type of base for each type of the distilled base.
func (r *relocation) match(ctx context.Context) error {
	wanted, err := r.wanted()
	if err != nil {
		return err
	}
	composites := make(map[string]int) // structs and unions of base, by those of the names that are wanted
	for id := range r.base.Named {
		if t := r.base.Type(id); t.Kind().IsComposite() && len(wanted[string(t.Name())]) > 0 {
			composites[string(t.Name())]++
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for id := range r.base.Named {
		t := r.base.Type(id)
		name := t.Name()
		for _, w := range wanted[string(name)] {
			d := r.dist.Type(w)
			if !fits(&d, &t, r.embedded[w], composites[string(name)] > 1) {
				continue
			}
			if r.types[w] != 0 {
				return fmt.Errorf("distilled base: the kernel has several types for %s %s: %d and %d", d.Kind(), name, r.types[w], id)
			}
			r.types[w], r.names[d.NameOff] = id, t.NameOff
		}
	}
	for id := TypeID(1); int(id) < len(r.types); id++ {
		if d := r.dist.Type(id); r.types[id] == 0 {
			size := ""
			if d.Kind() != KindFwd {
				size = fmt.Sprintf(" of %d bytes", d.size)
			}
			return fmt.Errorf("distilled base: the kernel has no %s %s%s", d.Kind(), d.Name(), size)
		}
	}
	return nil
}

// wanted returns the types of the distilled base by name.
func (r *relocation) wanted() (map[string][]TypeID, error) {
	all := make(map[string][]TypeID, len(r.types))
	for id := TypeID(1); int(id) < len(r.types); id++ {
		t := r.dist.Type(id)
		name := string(t.Name())
		switch t.Kind() {
		case KindInt, KindFloat, KindEnum, KindStruct, KindUnion, KindFwd:
		default:
			return nil, fmt.Errorf("distilled base: type %d is %s %s, want INT, FLOAT, ENUM, STRUCT, UNION or FWD", id, t.Kind(), name)
		}
		switch {
		case name == "":
			return nil, fmt.Errorf("distilled base: type %d (%s) has no name", id, t.Kind())
		case len(all[name]) >= limits.DistilledNames:
			return nil, fmt.Errorf("distilled base: more than %d types are called %s", limits.DistilledNames, name)
		}
		all[name] = append(all[name], id)
	}
	return all, nil
}

// fits reports whether a type of the kernel can be one of the distilled base with its name. The size matters for structs and unions that
// the module contains by value, and if several structs and unions of the kernel have the name. A struct or union of the distilled base,
// which the module may only point to, fits any kind of type. For a FWD, libbpf looks at the kind_flag of the kernel's struct or union, which
// is set for bit fields, and not at that of the FWD. So do kernels.
func fits(d, t *Type, embedded, several bool) bool {
	k := t.Kind()
	switch k {
	case KindInt, KindFloat, KindEnum, KindEnum64:
		several = true
	case KindFwd:
		several = false
	case KindStruct, KindUnion:
	default:
		return false
	}
	if several && t.size != d.size {
		return false
	}
	switch d.Kind() {
	case KindFwd:
		return k == KindFwd && t.KindFlag() == d.KindFlag() || k == KindStruct && !t.KindFlag() || k == KindUnion && t.KindFlag()
	case KindInt:
		return k == KindInt && d.IntEncoding() == t.IntEncoding()
	case KindFloat:
		return k == KindFloat
	case KindEnum:
		return k == KindEnum || k == KindEnum64
	}
	return !embedded || t.size == d.size
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
		kind := Kind(rec[1] >> 24 & 0x7f)
		if int(kind) >= NumKinds {
			return nil, fmt.Errorf("types: type %d is of %s, whose references are unknown", r.mod.first+TypeID(i), kind)
		}
		shape := kind.Shape()
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
