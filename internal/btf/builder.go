// SPDX-License-Identifier: Apache-2.0

package btf

import "encoding/binary"

// Magic, Version and HeaderLen describe the header that a Builder writes.
const (
	Magic     = 0xeb9f
	Version   = 1
	HeaderLen = 24 // bytes, up to and including str_len; newer headers are longer
)

// Builder writes a BTF blob type by type. The IDs count from 1 in the order of the
// calls. It does not check its arguments; load the result to do so.
type Builder struct {
	order binary.AppendByteOrder
	types []byte
	strs  []byte
	index map[string]uint32
	last  TypeID
}

// NewBuilder returns a Builder that writes in the given byte order.
func NewBuilder(order binary.ByteOrder) *Builder {
	b := &Builder{order: binary.LittleEndian, strs: []byte{0}, index: map[string]uint32{"": 0}}
	if order == binary.BigEndian {
		b.order = binary.BigEndian
	}
	return b
}

// String returns the offset of s in the string section, and adds s if it is new.
func (b *Builder) String(s string) uint32 {
	off, ok := b.index[s]
	if !ok {
		off = uint32(len(b.strs))
		b.index[s] = off
		b.strs = append(append(b.strs, s...), 0)
	}
	return off
}

// Type begins the next type and returns its ID. Word adds the words that follow
// struct btf_type.
func (b *Builder) Type(name string, kind Kind, flag bool, vlen int, sizeOrType uint32) TypeID {
	info := uint32(kind)<<24 | uint32(vlen)
	if flag {
		info |= 1 << 31
	}
	b.Word(b.String(name), info, sizeOrType)
	b.last++
	return b.last
}

// Word appends 32-bit values to the current type.
func (b *Builder) Word(vs ...uint32) {
	for _, v := range vs {
		b.types = b.order.AppendUint32(b.types, v)
	}
}

// Bytes returns the finished blob.
func (b *Builder) Bytes() []byte {
	out := make([]byte, 0, HeaderLen+len(b.types)+len(b.strs))
	out = b.order.AppendUint16(out, Magic)
	out = append(out, Version, 0)
	n := uint32(len(b.types))
	for _, v := range []uint32{HeaderLen, 0, n, n, uint32(len(b.strs))} {
		out = b.order.AppendUint32(out, v)
	}
	return append(append(out, b.types...), b.strs...)
}
