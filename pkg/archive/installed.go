// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// installedPaths are where packages put the vmlinux of a release. libbpf looks for BTF there, in this order.
var installedPaths = [...]string{
	"boot/vmlinux-%", "lib/modules/%/vmlinux-%", "lib/modules/%/build/vmlinux", "usr/lib/modules/%/kernel/vmlinux",
	"usr/lib/debug/boot/vmlinux-%", "usr/lib/debug/boot/vmlinux-%.debug", "usr/lib/debug/lib/modules/%/vmlinux",
}

// findInstalled returns the path of an ELF file with the BTF of a release, which is a valid part of a key, or "".
func findInstalled(root, release string) string {
	for _, p := range installedPaths {
		p = filepath.Join(cmp.Or(root, "/"), strings.ReplaceAll(p, "%", release))
		if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() && hasBTF(p) {
			return p
		}
	}
	return ""
}

// hasBTF reports whether a file is an ELF file with a section .BTF. debug/elf would make each tracer 240 kB larger.
func hasBTF(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 64)
	if _, err := f.ReadAt(head, 0); err != nil || string(head[:4]) != "\x7fELF" {
		return false
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if head[5] == 2 {
		order = binary.BigEndian
	}
	wide := head[4] == 2
	word := func(b []byte, narrow, at int) uint64 { // a field that has the size of an address
		if wide {
			return order.Uint64(b[at:])
		}
		return uint64(order.Uint32(b[narrow:]))
	}
	table, counts, size := word(head, 32, 40), head[46:], 40
	if wide {
		counts, size = head[58:], 64
	}
	n, names := int(order.Uint16(counts[2:])), int(order.Uint16(counts[4:]))
	sections := make([]byte, n*size)
	if int(order.Uint16(counts)) != size || names >= n || table >= 1<<62 {
		return false
	}
	if _, err := f.ReadAt(sections, int64(table)); err != nil {
		return false
	}
	section := func(i int) (name, kind uint32, off, length uint64) {
		s := sections[i*size:][:size]
		return order.Uint32(s), order.Uint32(s[4:]), word(s, 16, 24), word(s, 20, 32)
	}
	_, _, off, length := section(names)
	if off >= 1<<62 || length > 1<<20 {
		return false
	}
	text, err := io.ReadAll(io.NewSectionReader(f, int64(off), int64(length)))
	if err != nil {
		return false
	}
	for i := range n {
		const noBits = 8
		if name, kind, _, length := section(i); kind != noBits && length > 0 && uint64(name) < uint64(len(text)) && bytes.HasPrefix(text[name:], []byte(".BTF\x00")) {
			return true
		}
	}
	return false
}
