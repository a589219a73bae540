// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"

	"github.com/btfgen/btfgen/internal/btf"
)

// FindBTF returns the largest plausible BTF within a raw image. Images may hold several, since the
// kernel embeds BPF programs with theirs.
func FindBTF(img []byte) []byte {
	var best []byte
	for _, magic := range []string{"\x9f\xeb\x01", "\xeb\x9f\x01"} {
		for at := 0; ; {
			i := bytes.Index(img[at:], []byte(magic))
			if i < 0 {
				break
			}
			at += i
			if b := plausibleBTF(img[at:]); len(b) > len(best) {
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
	const maxLen = 1 << 12 // bytes of a header
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
