// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	magic = elf.ELFMAG

	// Sizes in bytes of ELF's structures.
	header32, header64   = 52, 64
	section32, section64 = 40, 64
	symbol32, symbol64   = 16, 24
)

var (
	errTruncated = errors.New("ELF header truncated")
	errBudget    = errors.New("too many damaged ELF headers")
)

// image is an ELF file that starts at data[0] and may end before data does.
type image struct {
	data     []byte
	order    binary.ByteOrder
	is64     bool
	typ      elf.Type
	machine  elf.Machine
	phoff    uint64
	phsize   uint64 // program header table, bytes
	shoff    uint64
	shnum    uint64
	shstrndx uint64
}

// section is one entry of the section header table. name is an offset into
// the section name table.
type section struct {
	name         uint32
	typ          elf.SectionType
	flags        elf.SectionFlag
	addr         uint64
	offset, size uint64 // bytes, not yet checked against the file
	link         uint32
}

// parseImage reads the ELF header at the start of data and checks that the
// section header table lies within data.
func parseImage(data []byte) (*image, error) {
	if len(data) < elf.EI_NIDENT || !bytes.HasPrefix(data, []byte(magic)) {
		return nil, errTruncated
	}
	im := &image{data: data}
	switch elf.Data(data[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
		im.order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		im.order = binary.BigEndian
	default:
		return nil, fmt.Errorf("unknown byte order %d in ELF header", data[elf.EI_DATA])
	}
	switch elf.Class(data[elf.EI_CLASS]) {
	case elf.ELFCLASS32:
	case elf.ELFCLASS64:
		im.is64 = true
	default:
		return nil, fmt.Errorf("unknown class %d in ELF header", data[elf.EI_CLASS])
	}
	if len(data) < im.headerSize() {
		return nil, errTruncated
	}
	return im, im.readHeader()
}

func (im *image) headerSize() int { return pick(im.is64, header64, header32) }

func (im *image) readHeader() error {
	d := im.data
	im.typ = elf.Type(im.u16(d, 16))
	im.machine = elf.Machine(im.u16(d, 18))
	if v := im.u32(d, 20); d[elf.EI_VERSION] != byte(elf.EV_CURRENT) || v != uint32(elf.EV_CURRENT) {
		return fmt.Errorf("unknown ELF version %d", v)
	}
	// The counts follow the flags and sizes at the header's end.
	tail := d[im.headerSize()-12:]
	im.phoff = im.word(d, pick(im.is64, 32, 28))
	im.shoff = im.word(d, pick(im.is64, 40, 32))
	im.phsize = uint64(im.u16(tail, 2)) * uint64(im.u16(tail, 4))
	im.shnum = uint64(im.u16(tail, 8))
	im.shstrndx = uint64(im.u16(tail, 10))
	if im.shoff == 0 {
		im.shnum = 0
		return nil
	}

	size := pick(im.is64, section64, section32)
	if got := im.u16(tail, 6); int(got) != size {
		return fmt.Errorf("section headers of %d bytes, want %d", got, size)
	}
	room := uint64(len(d))
	if im.shoff > room || room-im.shoff < uint64(size) {
		return fmt.Errorf("section header table at %#x: beyond the end (%d bytes)", im.shoff, room)
	}
	// Counts too large for 16 bits are in the first entry.
	first := im.section(0)
	if im.shnum == 0 {
		im.shnum = first.size
	}
	if im.shstrndx == uint64(elf.SHN_XINDEX) {
		im.shstrndx = uint64(first.link)
	}
	if im.shnum > (room-im.shoff)/uint64(size) {
		return fmt.Errorf("section header table at %#x: %d entries reach beyond the end (%d bytes)",
			im.shoff, im.shnum, room)
	}
	return nil
}

// section decodes entry i of the section header table, 0 ≤ i < shnum.
func (im *image) section(i uint64) section {
	if im.is64 {
		d := im.data[im.shoff+i*section64:][:section64]
		return section{
			name: im.u32(d, 0), typ: elf.SectionType(im.u32(d, 4)), flags: elf.SectionFlag(im.word(d, 8)),
			addr: im.word(d, 16), offset: im.word(d, 24), size: im.word(d, 32), link: im.u32(d, 40),
		}
	}
	d := im.data[im.shoff+i*section32:][:section32]
	return section{
		name: im.u32(d, 0), typ: elf.SectionType(im.u32(d, 4)), flags: elf.SectionFlag(im.word(d, 8)),
		addr: im.word(d, 12), offset: im.word(d, 16), size: im.word(d, 20), link: im.u32(d, 24),
	}
}

// bytes returns what s holds, nil if it holds nothing or reaches beyond the
// image.
func (im *image) bytes(s section) []byte {
	if s.typ == elf.SHT_NULL || s.typ == elf.SHT_NOBITS || !im.holds(s.offset, s.size) {
		return nil
	}
	return im.data[s.offset:][:s.size]
}

func (im *image) holds(offset, size uint64) bool {
	n := uint64(len(im.data))
	return offset <= n && size <= n-offset
}

// extent returns the number of bytes from the image's start to the end of
// whatever its headers describe. Each section header looked at is taken from
// budget.
func (im *image) extent(budget *int) (int, error) {
	if im.shnum == 0 {
		return 0, errors.New("no section header table")
	}
	if im.phsize > 0 && !im.holds(im.phoff, im.phsize) {
		return 0, fmt.Errorf("program header table at %#x: beyond the end (%d bytes)", im.phoff, len(im.data))
	}
	end := max(uint64(im.headerSize()), im.shoff+im.shnum*uint64(pick(im.is64, section64, section32)))
	if im.phsize > 0 {
		end = max(end, im.phoff+im.phsize)
	}
	for i := range im.shnum {
		if *budget--; *budget < 0 {
			return 0, errBudget
		}
		s := im.section(i)
		if s.typ == elf.SHT_NULL || s.typ == elf.SHT_NOBITS {
			continue
		}
		if !im.holds(s.offset, s.size) {
			return 0, fmt.Errorf("section %d at %#x, %d bytes: beyond the end (%d bytes)",
				i, s.offset, s.size, len(im.data))
		}
		end = max(end, s.offset+s.size)
	}
	return int(end), nil
}

// hasSection reports whether a section is called name.
func (im *image) hasSection(name string) bool {
	if im.shstrndx >= im.shnum {
		return false
	}
	names, want := im.bytes(im.section(im.shstrndx)), []byte(name+"\x00")
	for i := range im.shnum {
		at := uint64(im.section(i).name)
		if at < uint64(len(names)) && bytes.HasPrefix(names[at:], want) {
			return true
		}
	}
	return false
}

func (im *image) u16(d []byte, at int) uint16 { return im.order.Uint16(d[at:]) }
func (im *image) u32(d []byte, at int) uint32 { return im.order.Uint32(d[at:]) }

// word reads a field that is as wide as an address.
func (im *image) word(d []byte, at int) uint64 {
	if im.is64 {
		return im.order.Uint64(d[at:])
	}
	return uint64(im.u32(d, at))
}

func pick(is64 bool, a, b int) int {
	if is64 {
		return a
	}
	return b
}
