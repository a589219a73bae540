// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

const magic = elf.ELFMAG

var (
	errTruncated = errors.New("ELF header truncated")
	errBudget    = errors.New("too many damaged ELF headers")
)

// image is an ELF file that starts at data[0] and may end before data does.
type image struct {
	data     []byte
	order    binary.ByteOrder
	word     int // size of an address, bytes
	typ      elf.Type
	machine  elf.Machine
	shoff    int
	sections []byte // section header table
}

// sectionHeader is one entry of the section header table.
type sectionHeader struct {
	typ          elf.SectionType
	flags        elf.SectionFlag
	addr         uint64
	offset, size uint64 // bytes, not yet checked against the file
	link         uint32
}

// parseImage reads the ELF header at the start of data and checks that the section header table lies within data.
func parseImage(data []byte) (*image, error) {
	if len(data) < elf.EI_NIDENT || !bytes.HasPrefix(data, []byte(magic)) {
		return nil, errTruncated
	}
	im := &image{data: data, order: binary.LittleEndian, word: 8}
	switch elf.Data(data[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
	case elf.ELFDATA2MSB:
		im.order = binary.BigEndian
	default:
		return nil, fmt.Errorf("unknown byte order %d in ELF header", data[elf.EI_DATA])
	}
	switch elf.Class(data[elf.EI_CLASS]) {
	case elf.ELFCLASS32:
		im.word = 4
	case elf.ELFCLASS64:
	default:
		return nil, fmt.Errorf("unknown class %d in ELF header", data[elf.EI_CLASS])
	}
	head := 40 + 3*im.word
	if len(data) < head {
		return nil, errTruncated
	}
	if v := im.order.Uint32(data[20:]); data[elf.EI_VERSION] != byte(elf.EV_CURRENT) || v != uint32(elf.EV_CURRENT) {
		return nil, fmt.Errorf("unknown ELF version %d", v)
	}
	im.typ, im.machine = elf.Type(im.order.Uint16(data[16:])), elf.Machine(im.order.Uint16(data[18:]))

	off, room := im.uint(data[24+2*im.word:]), uint64(len(data))
	if off == 0 {
		return im, nil
	}
	size, n := uint64(im.order.Uint16(data[head-6:])), uint64(im.order.Uint16(data[head-4:]))
	if size != uint64(im.sectionSize()) {
		return nil, fmt.Errorf("section headers of %d bytes, want %d", size, im.sectionSize())
	}
	if off > room || room-off < size {
		return nil, fmt.Errorf("section header table at %#x: beyond the end (%d bytes)", off, room)
	}
	im.shoff, im.sections = int(off), data[off:]
	if n == 0 { // too large for 16 bits
		n = im.section(0).size
	}
	if n > (room-off)/size {
		return nil, fmt.Errorf("section header table at %#x: %d entries reach beyond the end (%d bytes)", off, n, room)
	}
	im.sections = im.sections[:n*size]
	return im, nil
}

func (im *image) sectionSize() int { return 16 + 6*im.word }

// numSections returns the number of entries of the section header table.
func (im *image) numSections() int { return len(im.sections) / im.sectionSize() }

// section decodes an entry of the section header table.
func (im *image) section(i int) sectionHeader {
	d := im.sections[i*im.sectionSize():]
	field := func(n int) uint64 { return im.uint(d[8+n*im.word:]) }
	return sectionHeader{
		typ: elf.SectionType(im.order.Uint32(d[4:])), flags: elf.SectionFlag(field(0)),
		addr: field(1), offset: field(2), size: field(3), link: im.order.Uint32(d[8+4*im.word:]),
	}
}

// uint reads a field that is as wide as an address.
func (im *image) uint(d []byte) uint64 {
	if im.word == 8 {
		return im.order.Uint64(d)
	}
	return uint64(im.order.Uint32(d))
}

// bytes returns the content of a section, nil if it has none or reaches beyond the image.
func (im *image) bytes(s sectionHeader) []byte {
	if s.isEmpty() || !im.holds(s) {
		return nil
	}
	return im.data[s.offset:][:s.size]
}

func (s sectionHeader) isEmpty() bool { return s.typ == elf.SHT_NULL || s.typ == elf.SHT_NOBITS }

func (im *image) holds(s sectionHeader) bool {
	n := uint64(len(im.data))
	return s.offset <= n && s.size <= n-s.offset
}

// extent returns the number of bytes up to the end of the section headers and sections. Each section header read is taken
// from budget.
func (im *image) extent(budget *int) (int, error) {
	if len(im.sections) == 0 {
		return 0, errors.New("no section header table")
	}
	end := im.shoff + len(im.sections)
	for i := range im.numSections() {
		if *budget--; *budget < 0 {
			return 0, errBudget
		}
		s := im.section(i)
		if s.isEmpty() {
			continue
		}
		if !im.holds(s) {
			return 0, fmt.Errorf("section %d at %#x, %d bytes: beyond the end (%d bytes)", i, s.offset, s.size, len(im.data))
		}
		end = max(end, int(s.offset+s.size))
	}
	return end, nil
}
