// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"debug/elf"
	"encoding/binary"

	"github.com/btfgen/btfgen/internal/testing/testelf"
)

// bpf returns a small BPF object that holds text.
func bpf(order binary.ByteOrder, text string) []byte {
	return object64(testelf.File{Order: order, Machine: elf.EM_BPF}, text)
}

func object64(f testelf.File, text string) []byte {
	f.Type = elf.ET_REL
	f.Sections = append([]testelf.Section{
		{Name: "kprobe/x", Data: []byte(text)},
		{Name: ".bss", Type: elf.SHT_NOBITS, Size: 1 << 40},
		{Name: ".BTF", Data: []byte("types")},
	}, f.Sections...)
	d, _ := f.Build()
	return d
}

// sym is a symbol at an offset into one of a file's sections.
func sym(name string, section int, at, size uint64) testelf.Symbol {
	return testelf.Symbol{Name: name, Section: section, At: at, Size: size}
}
