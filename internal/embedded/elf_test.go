package embedded

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"testing"
)

// file describes an ELF file for build. Zero machine and type mean EM_NONE
// and ET_NONE.
type file struct {
	order    binary.ByteOrder
	class32  bool
	typ      elf.Type
	machine  elf.Machine
	sections []part
	symbols  []sym
	dynamic  bool // symbols go into a .dynsym
	tail     bool // section data follow the section header table
	extended bool // counts are in section 0
	phnum    uint16
}

type part struct {
	name string
	typ  elf.SectionType // 0: PROGBITS
	addr uint64
	data []byte
	size uint64 // if not len(data)
}

// sym is a symbol at an offset into one of file's sections.
type sym struct {
	name    string
	section int
	at      uint64
	size    uint64
}

func (f file) word(v uint64) any {
	if f.class32 {
		return uint32(v)
	}
	return v
}

// build returns the file's bytes and the offset of each of its sections.
func (f file) build(tb testing.TB) ([]byte, []uint64) {
	tb.Helper()
	parts := append([]part{{typ: elf.SHT_NULL}}, f.sections...)
	links := make([]uint32, len(parts), len(parts)+3)
	if f.symbols != nil {
		typ, name := elf.SHT_SYMTAB, ".symtab"
		if f.dynamic {
			typ, name = elf.SHT_DYNSYM, ".dynsym"
		}
		table, names := f.symtab(tb)
		links = append(links, uint32(len(parts)+1), 0)
		parts = append(parts, part{name: name, typ: typ, data: table}, part{name: ".strtab", typ: elf.SHT_STRTAB, data: names})
	}
	var names bytes.Buffer
	names.WriteByte(0)
	offs := make([]uint32, len(parts)+1)
	parts, links = append(parts, part{name: ".shstrtab", typ: elf.SHT_STRTAB}), append(links, 0)
	for i, p := range parts {
		if p.name != "" {
			offs[i] = uint32(names.Len())
			names.WriteString(p.name + "\x00")
		}
	}
	parts[len(parts)-1].data = names.Bytes()

	hdr := uint64(pick(!f.class32, header64, header32))
	shdr := uint64(pick(!f.class32, section64, section32))
	phdr := uint64(pick(!f.class32, 56, 32))
	ph := hdr
	at := hdr + uint64(f.phnum)*phdr
	shoff := at
	if f.tail {
		at += uint64(len(parts)) * shdr
	}
	var body, table bytes.Buffer
	where := make([]uint64, len(parts))
	for i, p := range parts {
		for (at+uint64(body.Len()))%8 != 0 {
			body.WriteByte(0)
		}
		where[i] = at + uint64(body.Len())
		body.Write(p.data)
	}
	if !f.tail {
		shoff = at + uint64(body.Len())
	}
	shnum, shstrndx := uint16(len(parts)), uint16(len(parts)-1)
	for i, p := range parts {
		typ, size, flags := p.typ, p.size, elf.SectionFlag(0)
		if size == 0 {
			size = uint64(len(p.data))
		}
		if typ == elf.SHT_NULL && i > 0 {
			typ = elf.SHT_PROGBITS
		}
		if p.addr != 0 {
			flags = elf.SHF_ALLOC
		}
		if i == 0 && f.extended {
			size, links[0] = uint64(shnum), uint32(shstrndx)
			shnum, shstrndx = 0, uint16(elf.SHN_XINDEX)
		}
		f.put(tb, &table, offs[i], uint32(typ), f.word(uint64(flags)), f.word(p.addr), f.word(where[i]),
			f.word(size), links[i], uint32(0), f.word(8), f.word(0))
	}
	if f.phnum == 0 {
		ph = 0
	}

	class := elf.ELFCLASS64
	if f.class32 {
		class = elf.ELFCLASS32
	}
	enc := elf.ELFDATA2LSB
	if f.order == binary.BigEndian {
		enc = elf.ELFDATA2MSB
	}
	ident := [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(class), byte(enc), byte(elf.EV_CURRENT)}
	var out bytes.Buffer
	f.put(tb, &out, ident, uint16(f.typ), uint16(f.machine), uint32(elf.EV_CURRENT), f.word(0), f.word(ph),
		f.word(shoff), uint32(0), uint16(hdr), uint16(phdr), f.phnum, uint16(shdr), shnum, shstrndx)
	out.Write(make([]byte, uint64(f.phnum)*phdr))
	if f.tail {
		table.WriteTo(&out)
	}
	body.WriteTo(&out)
	table.WriteTo(&out)
	return out.Bytes(), where[1:]
}

func (f file) symtab(tb testing.TB) (table, names []byte) {
	var t, n bytes.Buffer
	n.WriteByte(0)
	f.put(tb, &t, make([]byte, pick(!f.class32, symbol64, symbol32)))
	for _, s := range f.symbols {
		name, shndx, value := uint32(n.Len()), uint16(s.section+1), f.sections[s.section].addr+s.at
		n.WriteString(s.name + "\x00")
		if f.class32 {
			f.put(tb, &t, name, f.word(value), f.word(s.size), uint16(1), shndx)
		} else {
			f.put(tb, &t, name, uint16(1), shndx, value, s.size)
		}
	}
	return t.Bytes(), n.Bytes()
}

func (f file) put(tb testing.TB, w io.Writer, vs ...any) {
	tb.Helper()
	for _, v := range vs {
		if err := binary.Write(w, f.order, v); err != nil {
			tb.Fatal(err)
		}
	}
}

// bpf returns a small BPF object that holds text.
func bpf(tb testing.TB, order binary.ByteOrder, text string) []byte {
	return object64(tb, file{order: order, machine: elf.EM_BPF}, text)
}

func object64(tb testing.TB, f file, text string) []byte {
	f.typ = elf.ET_REL
	f.sections = append([]part{
		{name: "kprobe/x", data: []byte(text)},
		{name: ".bss", typ: elf.SHT_NOBITS, size: 1 << 40},
		{name: ".BTF", data: []byte("types")},
	}, f.sections...)
	d, _ := f.build(tb)
	return d
}

// TestBuild holds build to the standard library's idea of ELF.
func TestBuild(t *testing.T) {
	for _, class32 := range []bool{false, true} {
		for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
			f := file{order: order, class32: class32, typ: elf.ET_EXEC, machine: elf.EM_MIPS,
				sections: []part{{name: ".data", addr: 0x1000, data: []byte("abc")}},
				symbols:  []sym{{"x", 0, 1, 2}}}
			d, _ := f.build(t)
			e, err := elf.NewFile(bytes.NewReader(d))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := e.Section(".data").Data(); err != nil || string(got) != "abc" {
				t.Errorf("section: %q, %v", got, err)
			}
			syms, err := e.Symbols()
			if err != nil || len(syms) != 1 || syms[0].Name != "x" || syms[0].Value != 0x1001 || syms[0].Size != 2 {
				t.Errorf("symbols: %+v, %v", syms, err)
			}
		}
	}
}
