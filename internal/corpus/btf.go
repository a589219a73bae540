// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// header is as much of a BTF header as it takes to find the end and to tell split BTF. Offsets are
// from the start of the blob.
type header struct {
	order   binary.ByteOrder
	typeOff int64
	typeLen int64
	strOff  int64
	strLen  int64
	end     int64 // of the last section
}

const minHeaderLen = 24

// parseHeader reads a BTF header from the first bytes of a blob of size bytes.
func parseHeader(head []byte, size int64) (header, error) {
	order := btfOrder(head)
	if order == nil {
		return header{}, errors.New("not BTF of version 1")
	}
	if len(head) < minHeaderLen {
		return header{}, fmt.Errorf("truncated header of %d bytes", len(head))
	}
	u32 := func(off int) int64 { return int64(order.Uint32(head[off:])) }
	n := u32(4)
	if n < minHeaderLen || n%4 != 0 || n > 1<<12 {
		return header{}, fmt.Errorf("header length %d", n)
	}
	h := header{order: order, typeOff: n + u32(8), typeLen: u32(12), strOff: n + u32(16), strLen: u32(20)}
	h.end = max(n, h.typeOff+h.typeLen, h.strOff+h.strLen)
	if n >= 32 && len(head) >= 32 {
		h.end = max(h.end, n+u32(24)+u32(28)) // the layout section
	}
	if h.end > size {
		return header{}, fmt.Errorf("truncated: %d bytes of %d", size, h.end)
	}
	return h, nil
}

// isSplit says whether a whole BTF blob is split BTF, which needs a base (a module's, on top of
// vmlinux). The string at offset 0 must be the empty one; base BTF has it in its own string
// section, which so begins with a NUL, while split BTF's section continues that of the base and
// begins with the first string that the base lacks, or is empty. Of 91 modules and 25 kernels
// looked at, in both byte orders, none is different, and libbpf checks the same of base BTF.
func isSplit(b []byte) (bool, error) {
	h, err := parseHeader(b, int64(len(b)))
	if err != nil {
		return false, err
	}
	if h.strLen > 0 && b[h.strOff+h.strLen-1] != 0 {
		return false, errors.New("string section does not end")
	}
	return h.strLen == 0 || b[h.strOff] != 0, nil
}

// scanBTF returns the largest plausible BTF within a raw image. Images may hold several, since the
// kernel embeds BPF programs with theirs.
func scanBTF(image []byte) []byte {
	var best []byte
	for _, magic := range []string{"\x9f\xeb\x01", "\xeb\x9f\x01"} {
		for at := 0; ; {
			i := bytes.Index(image[at:], []byte(magic))
			if i < 0 {
				break
			}
			at += i
			if b := plausibleBTF(image[at:]); len(b) > len(best) {
				best = b
			}
			at += len(magic)
		}
	}
	return best
}

// plausibleBTF returns the BTF that b begins with, or nil. By chance alone the magic occurs every
// 16 MB, so everything that can be told from the header and the first type has to fit.
func plausibleBTF(b []byte) []byte {
	h, err := parseHeader(b[:min(len(b), 64)], int64(len(b)))
	if err != nil || b[3] != 0 || h.typeLen < 12 || h.typeLen%4 != 0 || h.strLen < 2 {
		return nil
	}
	if h.strOff < h.typeOff+h.typeLen && h.typeOff < h.strOff+h.strLen {
		return nil
	}
	if b[h.strOff] != 0 || b[h.strOff+h.strLen-1] != 0 {
		return nil
	}
	name := int64(h.order.Uint32(b[h.typeOff:]))
	kind := h.order.Uint32(b[h.typeOff+4:]) >> 24 & 0x7f
	if name >= h.strLen || kind == 0 || kind > 31 {
		return nil
	}
	return b[:h.end]
}
