// SPDX-License-Identifier: Apache-2.0

package btf

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrNotBTF is returned for data that does not begin with the BTF magic in either
// byte order.
var ErrNotBTF = errors.New("no BTF magic")

// Header is struct btf_header.
type Header struct {
	Order          binary.ByteOrder
	Len            uint64 // hdr_len
	Types, Strings Section
	Layouts        Section // empty in 24-byte headers
}

// Section is a byte range of a blob.
type Section struct{ Off, Len uint64 }

func (s Section) of(data []byte) []byte { return data[s.Off : s.Off+s.Len] }

// End returns the number of bytes of a blob with this header.
func (h *Header) End() uint64 {
	return max(h.Len, h.Types.Off+h.Types.Len, h.Strings.Off+h.Strings.Len, h.Layouts.Off+h.Layouts.Len)
}

// OrderOf returns the byte order of a blob, or nil if head does not begin with the magic.
func OrderOf(head []byte) binary.ByteOrder {
	switch {
	case len(head) < 2:
	case binary.LittleEndian.Uint16(head) == Magic:
		return binary.LittleEndian
	case binary.BigEndian.Uint16(head) == Magic:
		return binary.BigEndian
	}
	return nil
}

// ReadHeader reads the header of a blob of size bytes that begins with head. It does
// not check that the sections lie inside the blob; [CheckHeader] does.
func ReadHeader(head []byte, size int64) (Header, error) {
	h := Header{Order: OrderOf(head)}
	if h.Order == nil && len(head) >= 2 {
		return h, fmt.Errorf("header: %w", ErrNotBTF)
	}
	if len(head) < HeaderLen {
		return h, fmt.Errorf("header: %d bytes, want at least %d", len(head), HeaderLen)
	}
	if head[2] != Version {
		return h, fmt.Errorf("header: version %d, want %d", head[2], Version)
	}
	u32 := func(off int) uint64 { return uint64(h.Order.Uint32(head[off:])) }
	h.Len = u32(4)
	if h.Len < HeaderLen || h.Len > uint64(size) || h.Len >= 32 && len(head) < 32 {
		return h, fmt.Errorf("header: hdr_len %d of %d bytes of data", h.Len, size)
	}
	h.Types = Section{h.Len + u32(8), u32(12)}
	h.Strings = Section{h.Len + u32(16), u32(20)}
	if h.Len >= 32 && u32(28) > 0 {
		h.Layouts = Section{h.Len + u32(24), u32(28)}
	}
	return h, nil
}

// CheckHeader returns the error of [BTF.Load] for the header of a blob of size bytes
// that begins with data.
func CheckHeader(data []byte, size int64) error {
	_, err := parseHeader(data, size)
	return err
}

// parseHeader is ReadHeader, and checks that the sections lie inside the blob.
func parseHeader(data []byte, size int64) (Header, error) {
	h, err := ReadHeader(data, size)
	if err != nil {
		return h, err
	}
	for _, s := range []struct {
		name string
		Section
	}{{"type", h.Types}, {"string", h.Strings}, {"layout", h.Layouts}} {
		if s.Off+s.Len > uint64(size) {
			return h, fmt.Errorf("header: %s section at %d+%d exceeds %d bytes of data", s.name, s.Off, s.Len, size)
		}
	}
	if overlap(h.Types, h.Strings) || overlap(h.Types, h.Layouts) || overlap(h.Strings, h.Layouts) {
		return h, errors.New("header: sections overlap")
	}
	if h.Types.Off%4 != 0 || h.Types.Len%4 != 0 {
		return h, errors.New("header: type section is not aligned to 4 bytes")
	}
	return h, nil
}

func overlap(a, b Section) bool {
	return a.Len > 0 && b.Len > 0 && a.Off < b.Off+b.Len && b.Off < a.Off+a.Len
}

// layoutEntry is the size of struct btf_layout: u8 info size, u8 element size,
// u16 flags.
const layoutEntry = 4

// kindSize returns the number of bytes behind struct btf_type for a kind, once and for
// each of vlen. The layout section of the blob has them for kinds without a Shape.
func kindSize(layouts []byte, k Kind) (extra, elem uint32, err error) {
	if int(k) < NumKinds {
		return uint32(4 * len(k.Shape().Extra)), uint32(4 * len(k.Shape().Elem)), nil
	}
	i := int(k) * layoutEntry
	if i+layoutEntry > len(layouts) {
		return 0, 0, fmt.Errorf("unknown kind %d, and no layout section to skip it by", k)
	}
	return uint32(layouts[i]), uint32(layouts[i+1]), nil
}
