// SPDX-License-Identifier: Apache-2.0

package sniff

import (
	"errors"
	"fmt"

	"github.com/btfgen/btfgen/internal/btf"
)

// ReadHeader reads a BTF header from the first bytes of a blob of size bytes.
func ReadHeader(head []byte, size int64) (btf.Header, error) {
	h, err := btf.ReadHeader(head, size)
	if err == nil && h.End() > uint64(size) {
		err = fmt.Errorf("truncated: %d bytes of %d", size, h.End())
	}
	return h, err
}

// IsSplit reports whether a BTF blob is split BTF, which needs a base (a module's needs vmlinux). The string at offset 0 must be empty. Base BTF
// has it in its own string section, which so begins with a NUL. Split BTF's section continues that of the base, and begins
// with the first string that the base lacks, or is empty. That holds for 91 modules and 25 kernels in both byte orders, and libbpf checks base BTF
// in the same way.
func IsSplit(b []byte) (bool, error) {
	h, err := ReadHeader(b, int64(len(b)))
	if err != nil {
		return false, err
	}
	s := h.Strings
	if s.Len > 0 && b[s.Off+s.Len-1] != 0 {
		return false, errors.New("string section does not end")
	}
	return s.Len == 0 || b[s.Off] != 0, nil
}
