// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/btfgen/btfgen/internal/btf"
)

// readHeader reads a BTF header from the first bytes of a blob of size bytes.
func readHeader(head []byte, size int64) (btf.Header, error) {
	h, err := btf.ReadHeader(head, size)
	if err == nil && h.End() > uint64(size) {
		err = fmt.Errorf("truncated: %d bytes of %d", size, h.End())
	}
	return h, err
}

// isSplit reports whether a BTF blob is split BTF, which needs a base (a module's needs vmlinux). The string at offset 0 must be empty. Base BTF
// has it in its own string section, which so begins with a NUL. Split BTF's section continues that of the base, and begins
// with the first string that the base lacks, or is empty. That holds for 91 modules and 25 kernels in both byte orders, and libbpf checks base BTF
// in the same way.
func isSplit(b []byte) (bool, error) {
	h, err := readHeader(b, int64(len(b)))
	if err != nil {
		return false, err
	}
	s := h.Strings
	if s.Len > 0 && b[s.Off+s.Len-1] != 0 {
		return false, errors.New("string section does not end")
	}
	return s.Len == 0 || b[s.Off] != 0, nil
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

// plausibleBTF returns the BTF that b begins with, or nil. The magic occurs by chance every 16 MB, so the header and the first
// type are checked as far as possible.
func plausibleBTF(b []byte) []byte {
	const maxLen = 1 << 12 // of a header
	h, err := btf.ReadHeader(b, int64(len(b)))
	if err != nil || btf.CheckHeader(b, int64(len(b))) != nil || h.Len > maxLen || b[3] != 0 || h.Types.Len < 12 || h.Strings.Len < 2 {
		return nil
	}
	if s := h.Strings; b[s.Off] != 0 || b[s.Off+s.Len-1] != 0 {
		return nil
	}
	name := uint64(h.Order.Uint32(b[h.Types.Off:]))
	kind := h.Order.Uint32(b[h.Types.Off+4:]) >> 24 & 0x7f
	if name >= h.Strings.Len || kind == 0 || kind > 31 {
		return nil
	}
	return b[:h.End()]
}
