// SPDX-License-Identifier: Apache-2.0

// Package elffile opens ELF files with debug/elf, within limits.
//
// debug/elf makes a string of each section's name. In a hostile file every name runs to the end of one long table,
// which may be compressed: 2,000 sections and 16 MB of names would take 32 GB. After [New], debug/elf reads a section
// only when it is asked to.
package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/btfgen/btfgen/internal/limits"
)

// New returns an ELF file of at most so many sections. The error is debug/elf's, or a [limits.Exceeded].
func New(r io.ReaderAt, sections int) (*elf.File, error) {
	if err := check(r, sections); err != nil {
		return nil, err
	}
	return elf.NewFile(r)
}

// headers are the section headers of a file.
type headers struct {
	order binary.ByteOrder
	word  int // bytes of an address
	at    int64
	n     int
	names int // number of the section with the names, 0 for none
}

// check checks the number of sections and their names. It leaves errors in the format to debug/elf.
func check(r io.ReaderAt, sections int) error {
	h, err := readHeaders(r, sections)
	if h == nil || err != nil || h.names == 0 || h.names >= h.n {
		return err
	}
	size := h.size()
	table := make([]byte, size*h.n)
	if _, err := r.ReadAt(table, h.at); err != nil {
		return nil
	}
	names := table[size*h.names:]
	at, length := int64(h.field(names, 2)), h.field(names, 3)
	switch {
	case h.field(names, 0)&uint64(elf.SHF_COMPRESSED) != 0:
		return errors.New("compressed names of sections")
	case length > limits.SectionNames:
		return exceeded()
	case length == 0:
		return nil
	}
	if _, err := r.ReadAt(make([]byte, 1), at+int64(length)-1); err != nil { // before memory is taken for them
		return nil
	}
	text := make([]byte, length)
	if _, err := r.ReadAt(text, at); err != nil {
		return nil
	}
	return checkNames(text, table, size, h.order)
}

// checkNames checks the sum of the names, by their offsets in the headers.
func checkNames(text, table []byte, size int, order binary.ByteOrder) error {
	sum := 0
	for ; len(table) > 0; table = table[size:] {
		at := order.Uint32(table)
		if uint64(at) >= uint64(len(text)) {
			return nil
		}
		n := bytes.IndexByte(text[at:], 0)
		if n < 0 {
			return nil
		}
		if sum += n; sum > limits.SectionNames {
			return exceeded()
		}
	}
	return nil
}

func exceeded() error {
	return &limits.Exceeded{Max: limits.SectionNames, What: "bytes of names of sections"}
}

// readHeaders reads where the section headers are; nil without any, or if debug/elf refuses the file.
func readHeaders(r io.ReaderAt, sections int) (*headers, error) {
	ident := make([]byte, elf.EI_NIDENT)
	if _, err := r.ReadAt(ident, 0); err != nil || !bytes.HasPrefix(ident, []byte(elf.ELFMAG)) {
		return nil, nil
	}
	orders := map[elf.Data]binary.ByteOrder{elf.ELFDATA2LSB: binary.LittleEndian, elf.ELFDATA2MSB: binary.BigEndian}
	words := map[elf.Class]int{elf.ELFCLASS32: 4, elf.ELFCLASS64: 8}
	h := &headers{order: orders[elf.Data(ident[elf.EI_DATA])], word: words[elf.Class(ident[elf.EI_CLASS])]}
	if h.order == nil || h.word == 0 {
		return nil, nil
	}
	header := make([]byte, 40+3*h.word)
	if _, err := r.ReadAt(header, 0); err != nil {
		return nil, nil
	}
	h.at = int64(h.uint(header[24+2*h.word:]))
	last := header[len(header)-6:] // size, number, and number of that with the names
	size, n, names := h.order.Uint16(last), uint64(h.order.Uint16(last[2:])), uint32(h.order.Uint16(last[4:]))
	if h.at <= 0 {
		return nil, nil
	}
	if n == 0 { // too large for the header
		first := make([]byte, h.size())
		if _, err := r.ReadAt(first, h.at); err != nil {
			return nil, nil
		}
		if n = h.field(first, 3); names == uint32(elf.SHN_XINDEX) {
			names = h.order.Uint32(first[8+4*h.word:])
		}
	}
	switch {
	case n > uint64(sections):
		return nil, fmt.Errorf("sections: %w", &limits.Exceeded{Max: int64(sections), What: "sections"})
	case n > 0 && int(size) != h.size():
		return nil, fmt.Errorf("section headers of %d bytes, want %d", size, h.size())
	}
	h.n, h.names = int(n), int(names)
	return h, nil
}

// size returns the bytes of a section header.
func (h *headers) size() int { return 16 + 6*h.word }

// field returns a field of a section header: flags, address, offset or size.
func (h *headers) field(header []byte, n int) uint64 { return h.uint(header[8+n*h.word:]) }

// uint reads a field that is as wide as an address.
func (h *headers) uint(b []byte) uint64 {
	if h.word == 8 {
		return h.order.Uint64(b)
	}
	return uint64(h.order.Uint32(b))
}
