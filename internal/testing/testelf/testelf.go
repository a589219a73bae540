// SPDX-License-Identifier: Apache-2.0

// Package testelf writes ELF files. It is for tests only.
package testelf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// File describes an ELF file. Zero machine and type mean EM_NONE and ET_NONE.
type File struct {
	Order    binary.ByteOrder
	Class32  bool
	Type     elf.Type
	Machine  elf.Machine
	Sections []Section // sections from 1 on; the tables of names and symbols follow
	Symbols  []Symbol  // local ones first
	Dynamic  bool      // symbols go into a .dynsym
	Tail     bool      // section data follow the section header table
	Extended bool      // counts are in section 0
	Phnum    uint16
}

// Section is a section of a File.
type Section struct {
	Name  string
	Type  elf.SectionType // 0: PROGBITS
	Flags elf.SectionFlag // SHF_ALLOC is added for sections with an address
	Info  uint32
	Addr  uint64
	Data  []byte
	Size  uint64 // bytes, if not len(Data)
}

// Symbol is a symbol at an offset into one of the File's sections.
type Symbol struct {
	Name    string
	Section int // index into Sections; -1: undefined
	At      uint64
	Size    uint64
	Info    byte // 0: a local object
}

// class has the sizes of a class's records in bytes.
type class struct{ header, program, section, symbol, rel int }

var (
	class32 = class{52, 32, 40, 16, 8}
	class64 = class{64, 56, 64, 24, 16}
)

func (f *File) class() class {
	if f.Class32 {
		return class32
	}
	return class64
}

// Build returns the file's bytes and the offset of each of its sections.
func (f *File) Build() ([]byte, []uint64) {
	w := writer{f: f, class: f.class()}
	w.collect()
	return w.write()
}

// writer builds a file.
type writer struct {
	f     *File
	class class
	parts []Section // all of them
	names []uint32  // offset of each section's name
	links []uint32
	where []uint64 // offset of each section's data
}

// collect adds the sections that every file has, and the tables.
func (w *writer) collect() {
	f := w.f
	w.parts = append([]Section{{Type: elf.SHT_NULL}}, f.Sections...)
	symtab := uint32(len(w.parts))
	w.links = make([]uint32, len(w.parts), len(w.parts)+3)
	for i, p := range w.parts {
		if p.Type == elf.SHT_REL {
			w.links[i] = symtab
		}
	}
	if f.Symbols != nil {
		typ, name := elf.SHT_SYMTAB, ".symtab"
		if f.Dynamic {
			typ, name = elf.SHT_DYNSYM, ".dynsym"
		}
		table, names, locals := f.symtab()
		w.links = append(w.links, symtab+1, 0)
		w.parts = append(w.parts, Section{Name: name, Type: typ, Data: table, Info: locals},
			Section{Name: ".strtab", Type: elf.SHT_STRTAB, Data: names})
	}
	w.parts, w.links = append(w.parts, Section{Name: ".shstrtab", Type: elf.SHT_STRTAB}), append(w.links, 0)
	names := []byte{0}
	w.names = make([]uint32, len(w.parts))
	for i, p := range w.parts {
		if p.Name != "" {
			w.names[i] = uint32(len(names))
			names = append(append(names, p.Name...), 0)
		}
	}
	w.parts[len(w.parts)-1].Data = names
}

// write lays the parts out: header, program headers, data and section headers,
// or the latter before the data.
func (w *writer) write() ([]byte, []uint64) {
	f := w.f
	phoff := uint64(w.class.header)
	at := phoff + uint64(f.Phnum)*uint64(w.class.program)
	shoff := at
	if f.Tail {
		at += uint64(len(w.parts) * w.class.section)
	}
	var body bytes.Buffer
	w.where = make([]uint64, len(w.parts))
	for i, p := range w.parts {
		for (at+uint64(body.Len()))%8 != 0 {
			body.WriteByte(0)
		}
		w.where[i] = at + uint64(body.Len())
		body.Write(p.Data)
	}
	if !f.Tail {
		shoff = at + uint64(body.Len())
	}
	if f.Phnum == 0 {
		phoff = 0
	}
	table, shnum, shstrndx := w.headers()
	out := w.header(phoff, shoff, shnum, shstrndx)
	out = append(out, make([]byte, int(f.Phnum)*w.class.program)...)
	if f.Tail {
		out = append(append(out, table...), body.Bytes()...)
	} else {
		out = append(append(out, body.Bytes()...), table...)
	}
	return out, w.where[1:]
}

func (w *writer) header(phoff, shoff uint64, shnum, shstrndx uint16) []byte {
	f := w.f
	cls, data := elf.ELFCLASS64, elf.ELFDATA2LSB
	if f.Class32 {
		cls = elf.ELFCLASS32
	}
	if f.Order == binary.BigEndian {
		data = elf.ELFDATA2MSB
	}
	ident := [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(cls), byte(data), byte(elf.EV_CURRENT)}
	return f.put(nil, ident, uint16(f.Type), uint16(f.Machine), uint32(elf.EV_CURRENT), f.word(0), f.word(phoff),
		f.word(shoff), uint32(0), uint16(w.class.header), uint16(w.class.program), f.Phnum, uint16(w.class.section), shnum, shstrndx)
}

// headers returns the table of sections and its entries in the ELF header.
func (w *writer) headers() (table []byte, shnum, shstrndx uint16) {
	f := w.f
	shnum, shstrndx = uint16(len(w.parts)), uint16(len(w.parts)-1)
	for i, p := range w.parts {
		typ, size, flags, entry := p.Type, p.Size, p.Flags, 0
		if size == 0 {
			size = uint64(len(p.Data))
		}
		switch typ {
		case elf.SHT_NULL:
			if i > 0 {
				typ = elf.SHT_PROGBITS
			}
		case elf.SHT_SYMTAB, elf.SHT_DYNSYM:
			entry = w.class.symbol
		case elf.SHT_REL:
			entry = w.class.rel
		}
		if p.Addr != 0 {
			flags |= elf.SHF_ALLOC
		}
		if i == 0 && f.Extended {
			size, w.links[0] = uint64(shnum), uint32(shstrndx)
			shnum, shstrndx = 0, uint16(elf.SHN_XINDEX)
		}
		table = f.put(table, w.names[i], uint32(typ), f.word(uint64(flags)), f.word(p.Addr), f.word(w.where[i]),
			f.word(size), w.links[i], p.Info, f.word(8), f.word(uint64(entry)))
	}
	return table, shnum, shstrndx
}

// symtab returns the table of symbols, the table of their names, and the number of local
// symbols including the null symbol.
func (f *File) symtab() (table, names []byte, locals uint32) {
	names = []byte{0}
	table = make([]byte, f.class().symbol)
	locals = 1
	for _, s := range f.Symbols {
		name, shndx, value := uint32(0), uint16(s.Section+1), s.At
		if s.Section >= 0 {
			value += f.Sections[s.Section].Addr
		}
		if s.Name != "" {
			name = uint32(len(names))
			names = append(append(names, s.Name...), 0)
		}
		info := s.Info
		if info == 0 {
			info = byte(elf.STT_OBJECT)
		}
		if elf.ST_BIND(info) == elf.STB_LOCAL {
			locals++
		}
		if f.Class32 {
			table = f.put(table, name, f.word(value), f.word(s.Size), info, byte(0), shndx)
		} else {
			table = f.put(table, name, info, byte(0), shndx, value, s.Size)
		}
	}
	return table, names, locals
}

// word is a value of the width that the class gives to addresses.
func (f *File) word(v uint64) any {
	if f.Class32 {
		return uint32(v)
	}
	return v
}

// put appends values of fixed size.
func (f *File) put(b []byte, vs ...any) []byte {
	for _, v := range vs {
		var err error
		if b, err = binary.Append(b, f.Order, v); err != nil {
			panic(err) // a bug in this package
		}
	}
	return b
}
