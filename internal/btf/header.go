// SPDX-License-Identifier: Apache-2.0

package btf

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrNotBTF says that the data does not begin with the BTF magic in either
// byte order.
var ErrNotBTF = errors.New("no BTF magic")

// header is struct btf_header with the offsets made absolute.
type header struct {
	order   binary.ByteOrder
	types   section
	strs    section
	layouts section // empty in 24-byte headers
}

// A section is a byte range of a blob.
type section struct{ off, len uint64 }

func (s section) of(data []byte) []byte { return data[s.off : s.off+s.len] }

// CheckHeader says why [BTF.Load] would refuse a blob of size bytes for its header, with which data begins.
func CheckHeader(data []byte, size int64) error {
	_, err := parseHeader(data, uint64(size))
	return err
}

// parseHeader reads the header, with which data begins, and checks that the sections lie inside size.
func parseHeader(data []byte, size uint64) (header, error) {
	var h header
	if len(data) < HeaderLen {
		return h, fmt.Errorf("header: %d bytes, want at least %d", len(data), HeaderLen)
	}
	switch {
	case binary.LittleEndian.Uint16(data) == Magic:
		h.order = binary.LittleEndian
	case binary.BigEndian.Uint16(data) == Magic:
		h.order = binary.BigEndian
	default:
		return h, fmt.Errorf("header: %w", ErrNotBTF)
	}
	if data[2] != Version {
		return h, fmt.Errorf("header: version %d, want %d", data[2], Version)
	}
	u32 := func(off int) uint64 { return uint64(h.order.Uint32(data[off:])) }

	hdrLen := u32(4)
	if hdrLen < HeaderLen || hdrLen > uint64(len(data)) {
		return h, fmt.Errorf("header: hdr_len %d of %d bytes of data", hdrLen, len(data))
	}
	h.types = section{hdrLen + u32(8), u32(12)}
	h.strs = section{hdrLen + u32(16), u32(20)}
	if hdrLen >= 32 && u32(28) > 0 {
		h.layouts = section{hdrLen + u32(24), u32(28)}
	}
	for _, s := range []struct {
		name string
		section
	}{{"type", h.types}, {"string", h.strs}, {"layout", h.layouts}} {
		if s.off+s.len > size {
			return h, fmt.Errorf("header: %s section at %d+%d exceeds %d bytes of data", s.name, s.off, s.len, size)
		}
	}
	if overlap(h.types, h.strs) || overlap(h.types, h.layouts) || overlap(h.strs, h.layouts) {
		return h, errors.New("header: sections overlap")
	}
	if h.types.off%4 != 0 || h.types.len%4 != 0 {
		return h, errors.New("header: type section is not aligned to 4 bytes")
	}
	return h, nil
}

func overlap(a, b section) bool {
	return a.len > 0 && b.len > 0 && a.off < b.off+b.len && b.off < a.off+a.len
}

// layoutEntry is the size of struct btf_layout: u8 info size, u8 element size,
// u16 flags.
const layoutEntry = 4

// kindSize returns the bytes that follow struct btf_type for a kind, once and
// for each of vlen. Kinds without a Shape need the blob's layout section.
func kindSize(layouts []byte, k Kind) (extra, elem uint32, err error) {
	if int(k) < numKinds {
		return uint32(4 * len(k.Shape().Extra)), uint32(4 * len(k.Shape().Elem)), nil
	}
	i := int(k) * layoutEntry
	if i+layoutEntry > len(layouts) {
		if len(layouts) == 0 {
			return 0, 0, fmt.Errorf("unknown kind %d, and no layout section to skip it by", k)
		}
		return 0, 0, fmt.Errorf("unknown kind %d, not in the layout section", k)
	}
	return uint32(layouts[i]), uint32(layouts[i+1]), nil
}
