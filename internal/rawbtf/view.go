package rawbtf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// BTF is a view of one blob: the types of a kernel or an object, or the split
// BTF of a module on top of its base. The zero value is ready for [BTF.Load].
// After Load it is immutable and safe for use by several goroutines, as long
// as nobody changes the data under it.
type BTF struct {
	base   *BTF
	types  []byte
	strs   []byte
	swap   bool     // data is big-endian
	starts []uint32 // byte offset in types of each own type
	named  []TypeID // own types that a relocation can name, in order of ID
	first  TypeID   // ID of the first own type
	strOff uint32   // offset of the first own string
	ptr    uint32   // bytes of a pointer, 0 when unknown
}

// New loads data, on top of base when that is not nil.
func New(data []byte, base *BTF) (*BTF, error) {
	b := new(BTF)
	if err := b.Load(data, base); err != nil {
		return nil, err
	}
	return b, nil
}

// Load makes b a view of data, reusing b's memory from an earlier Load. The
// view refers to data, which must not change while it is used. A base makes
// data split BTF: its own type IDs and string offsets go on where the base's
// end. The memory needed is at most two thirds of the data's size. On error b is
// empty.
func (b *BTF) Load(data []byte, base *BTF) error {
	*b = BTF{base: base, starts: b.starts[:0], named: b.named[:0], first: 1}
	err := b.load(data)
	if err != nil {
		*b = BTF{starts: b.starts[:0], named: b.named[:0], first: 1}
	}
	return err
}

func (b *BTF) load(data []byte) error {
	h, err := parseHeader(data)
	if err != nil {
		return err
	}
	b.swap = h.order == binary.BigEndian
	b.types, b.strs = h.types.of(data), h.strs.of(data)
	if b.base != nil {
		if b.base.swap != b.swap {
			return fmt.Errorf("header: byte order %s differs from the base's %s", b.Order(), b.base.Order())
		}
		b.first = TypeID(b.base.NumTypes())
		b.strOff = b.base.strEnd()
		b.ptr = b.base.ptr
	} else if len(b.strs) == 0 || b.strs[0] != 0 {
		return fmt.Errorf("strings: section does not begin with the empty string%s", splitHint(b.strs))
	}
	if n := len(b.strs); n > 0 && b.strs[n-1] != 0 {
		return fmt.Errorf("strings: section does not end with a NUL byte")
	}
	return b.walk(&h, h.layouts.of(data))
}

func splitHint(strs []byte) string {
	if len(strs) > 0 {
		return " (split BTF needs its base)"
	}
	return ""
}

// walk finds where each type starts and checks all that they refer to. Most of
// a corpus run's time goes into it, so it works on local variables and makes
// no Type.
func (b *BTF) walk(h *header, layouts []byte) error {
	// A type takes some 30 bytes. With a little more the next kernel fits, too.
	if want := len(b.types) / 28; cap(b.starts) < want {
		b.starts = make([]uint32, 0, want+want/4)
		b.named = make([]TypeID, 0, want/4)
	}
	c := checker{swap: b.swap}
	strEnd := b.strEnd()
	types, starts, named, id := b.types, b.starts, b.named, b.first
	for off := 0; off < len(types); id++ {
		rec := types[off:]
		if len(rec) < typeHdrLen {
			return fmt.Errorf("types: type %d at byte %d is cut short", id, off)
		}
		name, info, size := c.u32(rec), c.u32(rec[4:]), c.u32(rec[8:])
		kind, vlen := Kind(info>>24&0x7f), info&0xffffff
		var lay kindLayout
		if int(kind) < numKinds {
			lay = knownLayout[kind]
		} else if l, err := h.kindSize(layouts, kind); err != nil {
			return fmt.Errorf("types: type %d: %w", id, err)
		} else {
			lay = l
		}
		need := uint64(typeHdrLen) + uint64(lay.info) + uint64(lay.elem)*uint64(vlen)
		if need > uint64(len(rec)) {
			return fmt.Errorf("types: type %d (%s with %d elements) at byte %d needs %d bytes, %d are left", id, kind, vlen, off, need, len(rec))
		}
		if kind == KindVoid {
			return fmt.Errorf("types: type %d at byte %d is of kind 0", id, off)
		}
		c.check(kind, name, size, rec[typeHdrLen:need])
		if c.nameMax >= strEnd {
			return fmt.Errorf("types: type %d (%s) has a name at byte %d, strings end at %d", id, kind, c.nameMax, strEnd)
		}
		starts = append(starts, uint32(off))
		if name != 0 && nameable[kind] {
			named = append(named, id)
			if kind == KindInt && b.ptr == 0 {
				t := Type{b: b, NameOff: name, size: size}
				b.ptr = t.pointerSize()
			}
		}
		off += int(need)
	}
	b.starts, b.named = starts, named
	if c.refMax >= uint32(id) {
		return b.badReference()
	}
	return nil
}

// badReference names the type that refers to another one outside the blob.
func (b *BTF) badReference() error {
	end := uint32(b.NumTypes())
	for i := range b.starts {
		c := checker{swap: b.swap}
		t := b.Type(b.first + TypeID(i))
		stop := len(b.types)
		if i+1 < len(b.starts) {
			stop = int(b.starts[i+1])
		}
		if c.check(t.Kind(), t.NameOff, t.size, b.types[t.off+typeHdrLen:stop]); c.refMax >= end {
			return fmt.Errorf("types: type %d (%s) refers to type %d of %d", t.ID, t.Kind(), c.refMax, end-1)
		}
	}
	return fmt.Errorf("types: a type refers to one outside the section")
}

// checker finds the largest name offset and type reference of the types that
// it is shown.
type checker struct {
	nameMax, refMax uint32
	swap            bool
}

func (c *checker) u32(p []byte) uint32 {
	v := binary.LittleEndian.Uint32(p)
	if c.swap {
		v = bits.ReverseBytes32(v)
	}
	return v
}

// check looks at a type; body is what follows its header.
func (c *checker) check(kind Kind, name, size uint32, body []byte) {
	c.nameMax = max(c.nameMax, name)
	switch kind {
	case KindPtr, KindTypedef, KindVolatile, KindConst, KindRestrict, KindTypeTag,
		KindFunc, KindVar, KindDeclTag:
		c.refMax = max(c.refMax, size)
	case KindArray:
		c.refMax = max(c.refMax, c.u32(body), c.u32(body[4:]))
	case KindStruct, KindUnion:
		names, refs := c.nameMax, c.refMax
		for ; len(body) >= 12; body = body[12:] {
			names, refs = max(names, c.u32(body)), max(refs, c.u32(body[4:]))
		}
		c.nameMax, c.refMax = names, refs
	case KindEnum:
		for ; len(body) >= 8; body = body[8:] {
			c.nameMax = max(c.nameMax, c.u32(body))
		}
	case KindEnum64:
		for ; len(body) >= 12; body = body[12:] {
			c.nameMax = max(c.nameMax, c.u32(body))
		}
	case KindFuncProto:
		names, refs := c.nameMax, max(c.refMax, size)
		for ; len(body) >= 8; body = body[8:] {
			names, refs = max(names, c.u32(body)), max(refs, c.u32(body[4:]))
		}
		c.nameMax, c.refMax = names, refs
	case KindDatasec:
		for ; len(body) >= 12; body = body[12:] {
			c.refMax = max(c.refMax, c.u32(body))
		}
	}
}

func (b *BTF) u32(off uint32) uint32 {
	v := binary.LittleEndian.Uint32(b.types[off:])
	if b.swap {
		v = bits.ReverseBytes32(v)
	}
	return v
}

// Order returns the byte order of the blob.
func (b *BTF) Order() binary.ByteOrder {
	if b.swap {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// Base returns the BTF that b is split from, or nil.
func (b *BTF) Base() *BTF { return b.base }

// FirstID returns the ID of the first type that is b's own, not its base's.
func (b *BTF) FirstID() TypeID { return b.first }

// NumTypes returns the number of types, void and those of the base included,
// which is one more than the last ID.
func (b *BTF) NumTypes() int { return int(b.first) + len(b.starts) }

func (b *BTF) strEnd() uint32 { return b.strOff + uint32(len(b.strs)) }

// Name returns the string at an offset taken from this view, as a sub-slice of
// the data. The empty string has offset 0.
func (b *BTF) Name(off uint32) []byte {
	s := b.tail(off)
	if i := bytes.IndexByte(s, 0); i >= 0 {
		return s[:i]
	}
	return s
}

// NameIs reports whether the string at off is s. It is cheaper than Name.
func (b *BTF) NameIs(off uint32, s string) bool {
	t := b.tail(off)
	return len(t) > len(s) && t[len(s)] == 0 && string(t[:len(s)]) == s
}

// tail returns the strings from off to the end of their section, which ends
// with a NUL byte, or nil when off lies outside.
func (b *BTF) tail(off uint32) []byte {
	for b.base != nil && off < b.strOff {
		b = b.base
	}
	if off -= b.strOff; off < uint32(len(b.strs)) {
		return b.strs[off:]
	}
	return nil
}

// Type returns the type with an ID. An ID outside the blob gives void; none
// that was read from the view is outside.
func (b *BTF) Type(id TypeID) Type {
	for b.base != nil && id < b.first {
		b = b.base
	}
	i := id - b.first
	if id < b.first || int(i) >= len(b.starts) {
		return Type{b: b}
	}
	off := b.starts[i]
	return Type{b: b, off: off, ID: id, NameOff: b.u32(off), info: b.u32(off + 4), size: b.u32(off + 8)}
}

// Named returns the IDs of b's own types that have a name and a kind by which
// a relocation can ask for them, in ascending order. The slice is b's.
func (b *BTF) Named() []TypeID { return slices.Clip(b.named) }

// nameable are the kinds that a loader may take for a candidate.
var nameable = [256]bool{
	KindInt: true, KindStruct: true, KindUnion: true, KindEnum: true, KindFwd: true,
	KindTypedef: true, KindFloat: true, KindEnum64: true,
}
