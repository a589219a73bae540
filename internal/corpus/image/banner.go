// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"debug/elf"

	"github.com/btfgen/btfgen/internal/corpus/naming"
)

// versionText returns the release at the beginning of the NUL-terminated text at off.
func versionText(img []byte, off int) string {
	if off >= len(img) {
		return ""
	}
	text := img[off:min(len(img), off+128)]
	end := bytes.IndexAny(text, " \x00")
	if end <= 0 || !naming.StartsWithDigit(string(text[:end])) {
		return ""
	}
	return naming.ValidRelease(string(text[:end]))
}

// ELFRelease returns the release in the kernel's banner at the beginning of .rodata, or "".
func ELFRelease(f *elf.File) string {
	sec := f.Section(".rodata")
	if sec == nil || sec.Type != elf.SHT_PROGBITS || sec.ReaderAt == nil { // nil for a compressed one
		return ""
	}
	head := make([]byte, min(sec.FileSize, 4096))
	n, _ := sec.ReadAt(head, 0)
	return Release(head[:n])
}

// Release returns the release in the first "Linux version 6.1.0-47-amd64 (…" of b.
func Release(b []byte) string {
	const text = "Linux version "
	i := bytes.Index(b, []byte(text))
	if i < 0 {
		return ""
	}
	return versionText(b, i+len(text))
}
