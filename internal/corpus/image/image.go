// SPDX-License-Identifier: Apache-2.0

// Package image finds compressed kernels, BTF and releases in bootable kernel images and in the memory of kernels.
package image

import (
	"encoding/binary"
	"errors"
	"io"
)

// Type is a form of bootable kernel.
type Type int

const (
	None    Type = iota
	BzImage      // x86: setup code and a compressed vmlinux
	Zboot        // EFI zboot: a PE file around a compressed Image
	Arm64        // arm64 Image, the kernel's memory
	RISCV        // the same of riscv64
	ZImage       // 32-bit arm: a decompressor and a compressed Image
)

// Sniff recognises an image by its first bytes; s390x's need IsS390.
func Sniff(head []byte) Type {
	at := func(off int, magic string) bool {
		return len(head) >= off+len(magic) && string(head[off:off+len(magic)]) == magic
	}
	switch {
	case at(0x202, "HdrS") && at(0x1fe, "\x55\xaa"):
		return BzImage
	case at(0, "MZ") && at(4, "zimg"):
		return Zboot
	case at(0x38, "ARM\x64"):
		return Arm64
	case at(0x38, "RSC\x05"):
		return RISCV
	case at(0x24, "\x18\x28\x6f\x01"):
		return ZImage
	}
	return None
}

// s390Magic is what an s390x image has at s390At.
const (
	s390Magic = "S390EP"
	s390At    = 0x10008
)

// S390Len is the number of bytes that IsS390 needs.
const S390Len = s390At + len(s390Magic)

// IsS390 reports whether r is an s390x image, in its first S390Len bytes.
func IsS390(r io.ReaderAt) bool {
	var b [len(s390Magic)]byte
	n, _ := r.ReadAt(b[:], s390At)
	return string(b[:n]) == s390Magic
}

// BzImagePayload returns the compressed kernel in a bzImage. It follows the x86 boot protocol's header: payload_offset counts from the end of the
// setup code, and the version text lies at kernel_version.
func BzImagePayload(img []byte) ([]byte, error) {
	if len(img) < 0x250 {
		return nil, io.ErrUnexpectedEOF
	}
	le := binary.LittleEndian
	if v := le.Uint16(img[0x206:]); v < 0x208 {
		return nil, errors.New("boot protocol older than 2.08")
	}
	setup := int64(img[0x1f1])
	if setup == 0 {
		setup = 4
	}
	off := (setup+1)*512 + int64(le.Uint32(img[0x248:]))
	n := int64(le.Uint32(img[0x24c:]))
	if off+n > int64(len(img)) {
		return nil, io.ErrUnexpectedEOF
	}
	return img[off : off+n], nil
}

// BzImageRelease returns the release in the header of a bzImage.
func BzImageRelease(img []byte) string {
	return versionText(img, 0x200+int(binary.LittleEndian.Uint16(img[0x20e:])))
}

// ZbootPayload returns the compressed kernel in an EFI zboot image, and the machine in its PE header.
func ZbootPayload(img []byte) (data []byte, arch string, err error) {
	if len(img) < 0x40 {
		return nil, "", io.ErrUnexpectedEOF
	}
	le := binary.LittleEndian
	off, n := int64(le.Uint32(img[8:])), int64(le.Uint32(img[12:]))
	if off+n > int64(len(img)) {
		return nil, "", io.ErrUnexpectedEOF
	}
	if pe := int64(le.Uint32(img[0x3c:])); pe+6 <= int64(len(img)) {
		arch = map[uint16]string{0xaa64: "arm64", 0x5064: "riscv64", 0x6264: "loongarch64"}[le.Uint16(img[pe+4:])]
	}
	return img[off : off+n], arch, nil
}
