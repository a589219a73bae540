// SPDX-License-Identifier: Apache-2.0

package btf

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/btfgen/btfgen/internal/limits"
)

// BTF is a view of one blob: the types of a kernel or an object, or the split BTF of a
// module on top of its base. The zero value is ready for [BTF.Load]. After Load it is
// immutable and safe for use by several goroutines, as long as the data does not change.
type BTF struct {
	base   *BTF
	types  []uint32 // words of the type section, in this machine's byte order
	strs   []byte
	big    bool        // data is big-endian
	starts []uint32    // where in types each own type starts
	named  []namedType // own types that a relocation can name, in order of ID
	kinds  [128]uint32 // own types of each kind
	own    []uint32    // memory for types that cannot be read in place
	first  TypeID      // ID of the first own type
	strOff uint32      // offset of the first own string
	ptr    uint32      // bytes of a pointer, 0 when unknown
	trap   TypeID      // stands for types that were left out, 0 if none were
	caught uint32      // 1 after Type has returned it
}

// New loads data, on top of base unless that is nil. For many megabytes of data use
// [BTF.Load], which has a context.
func New(data []byte, base *BTF) (*BTF, error) {
	b := new(BTF)
	if err := b.Load(context.Background(), data, base); err != nil {
		return nil, err
	}
	return b, nil
}

// Load makes b a view of data, and reuses b's memory from an earlier Load. The view
// refers to data, which must not change while the view is used. With a base data is
// split BTF, whose type IDs and string offsets begin where those of the base end. Load
// needs a tenth of the data's size in memory for real BTF, and at most as much again.
// It copies data with another byte order than the machine's. On error, which may be
// that of the context, b is empty.
func (b *BTF) Load(ctx context.Context, data []byte, base *BTF) error {
	b.reset(base)
	err := b.load(ctx, data)
	if err != nil {
		b.reset(nil)
	}
	return err
}

// reset empties b, but keeps its memory.
func (b *BTF) reset(base *BTF) {
	*b = BTF{base: base, starts: b.starts[:0], named: b.named[:0], own: b.own[:0], first: 1}
}

func (b *BTF) load(ctx context.Context, data []byte) error {
	h, err := parseHeader(data, int64(len(data)))
	if err != nil {
		return err
	}
	b.big = h.Order == binary.BigEndian
	b.types, b.strs = b.words(h.Types.of(data)), h.Strings.of(data)
	n := len(b.strs)
	switch {
	case n > 0 && b.strs[n-1] != 0:
		return errors.New("strings: section does not end with a NUL byte")
	case b.base != nil:
		if b.base.big != b.big {
			return fmt.Errorf("header: byte order %s differs from the base's %s", b.Order(), b.base.Order())
		}
		b.first = TypeID(b.base.NumTypes())
		b.strOff = b.base.strEnd()
		b.ptr = b.base.ptr
	case n == 0:
		return errors.New("strings: section does not begin with the empty string")
	case b.strs[0] != 0:
		return errors.New("strings: section does not begin with the empty string (split BTF needs its base)")
	}
	return b.walk(ctx, h.Layouts.of(data))
}

// Order returns the byte order of the blob.
func (b *BTF) Order() binary.ByteOrder {
	if b.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// FirstID returns the ID of the first type that is not in the base.
func (b *BTF) FirstID() TypeID { return b.first }

// NumTypes returns the number of types including void and those of the base, which is
// one more than the last ID.
func (b *BTF) NumTypes() int { return int(b.first) + len(b.starts) }

// Count returns how many of b's own types are of a kind.
func (b *BTF) Count(k Kind) int { return int(b.kinds[k&0x7f]) }

// WithName returns the IDs of b's own types that relocations can name and that have exactly a name, in ascending order. It finds them by
// the first string that is the name, so it may miss some of a blob that has the string twice.
func (b *BTF) WithName(name string) iter.Seq[TypeID] {
	return func(yield func(TypeID) bool) {
		at := bytes.Index(b.strs, []byte("\x00"+name+"\x00"))
		if at < 0 {
			return
		}
		off := b.strOff + uint32(at) + 1
		for i := range b.named {
			if b.named[i].name == off && !yield(b.named[i].id) {
				return
			}
		}
	}
}

func (b *BTF) strEnd() uint32 { return b.strOff + uint32(len(b.strs)) }

// Name returns the string at an offset taken from this view, as a sub-slice of the
// data. The empty string has offset 0. Name cuts strings off one byte after
// limits.NameBytes.
func (b *BTF) Name(off uint32) []byte { return cut(b.tail(off)) }

// cut returns the string at the beginning of s as Name does.
func cut(s []byte) []byte {
	s = s[:min(len(s), limits.NameBytes+1)]
	if i := bytes.IndexByte(s, 0); i >= 0 {
		return s[:i]
	}
	return s
}

// NameIs reports whether the string at off is s. It is faster than Name.
func (b *BTF) NameIs(off uint32, s string) bool {
	t := b.tail(off)
	return len(t) > len(s) && t[len(s)] == 0 && string(t[:len(s)]) == s
}

// tail returns the strings from off to the end of their section, which ends with a NUL
// byte, or nil if off lies outside.
func (b *BTF) tail(off uint32) []byte {
	for b.base != nil && off < b.strOff {
		b = b.base
	}
	if off -= b.strOff; off < uint32(len(b.strs)) {
		return b.strs[off:]
	}
	return nil
}

// Type returns the type with an ID, or void for an ID outside the blob. IDs that come
// from the view are never outside.
//
// It is written so that Go's compiler inlines it, for which it has little to spare.
func (b *BTF) Type(id TypeID) Type {
	for b.base != nil && id < b.first {
		b = b.base
	}
	if id == b.trap {
		atomic.StoreUint32(&b.caught, 1)
	}
	if uint(id-b.first) >= uint(len(b.starts)) { // ID 0 is more than any
		return Type{btf: b}
	}
	off := b.starts[id-b.first]
	h := b.types[off:]
	return Type{btf: b, off: off, ID: id, NameOff: h[0], info: h[1], size: h[2]}
}

// SetTrap makes the last type of a part of a kernel stand for all types that were left out. It must be called before b
// is shared with other goroutines, and lasts until the next Load.
func (b *BTF) SetTrap() { b.trap, b.caught = TypeID(b.NumTypes()-1), 0 }

// Trapped reports whether Type has returned the type of SetTrap, to callers of b or of a view on top of it. If so, results may
// depend on types that were left out.
func (b *BTF) Trapped() bool { return atomic.LoadUint32(&b.caught) != 0 }

// Named yields the IDs of b's own types that relocations can name, in ascending order:
// they have a name, and a kind whose [Shape] is Named.
func (b *BTF) Named(yield func(TypeID) bool) {
	for _, n := range b.named {
		if !yield(n.id) {
			return
		}
	}
}
