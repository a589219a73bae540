package bpfprog

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// chain makes an object of a program that calls the first of n functions, each
// of which calls the next and reads a variable of its own, by relocations.
func chain(n int) []byte {
	le := binary.LittleEndian
	var strs, code, syms, rel bytes.Buffer
	str := func(s string) uint32 {
		at := uint32(strs.Len())
		strs.WriteString(s + "\x00")
		return at
	}
	sym := func(name string, typ elf.SymType, section uint16, value, size uint64) {
		_ = binary.Write(&syms, le, elf.Sym64{Name: str(name), Info: elf.ST_INFO(elf.STB_GLOBAL, typ), Shndx: section, Value: value, Size: size})
	}
	insn := func(b ...byte) { code.Write(append(b, make([]byte, 8-len(b))...)) }
	relocate := func(sym int) {
		_ = binary.Write(&rel, le, elf.Rel64{Off: uint64(code.Len()), Info: elf.R_INFO(uint32(sym), 10)})
	}
	str("")
	sym("", 0, 0, 0, 0)
	for i := range n {
		sym(fmt.Sprintf("f%d", i), elf.STT_FUNC, 1, uint64(code.Len()), 32)
		relocate(n + 1 + i)
		insn(byte(OpLdImm64), 1)
		insn()
		relocate(min(i+2, n))
		insn(byte(OpCall), 0x10, 0, 0, 0xff, 0xff, 0xff, 0xff)
		insn(byte(OpExit))
	}
	entry := []byte{byte(OpCall), 0x10, 0, 0, 0xff, 0xff, 0xff, 0xff, byte(OpExit), 0, 0, 0, 0, 0, 0, 0}
	var entryRel bytes.Buffer
	_ = binary.Write(&entryRel, le, elf.Rel64{Info: elf.R_INFO(1, 10)})
	for i := range n {
		sym(fmt.Sprintf("v%d", i), elf.STT_OBJECT, 3, uint64(8*i), 8)
	}
	sym("entry", elf.STT_FUNC, 4, 0, uint64(len(entry)))
	sections := []struct {
		name       string
		typ        elf.SectionType
		flags      elf.SectionFlag
		link, info uint32
		size       uint64
		data       []byte
	}{
		{},
		{name: ".text", typ: elf.SHT_PROGBITS, flags: elf.SHF_EXECINSTR, data: code.Bytes()},
		{name: ".rel.text", typ: elf.SHT_REL, link: 6, info: 1, size: 16, data: rel.Bytes()},
		{name: ".rodata", typ: elf.SHT_PROGBITS, data: make([]byte, 8*n)},
		{name: "kprobe/f", typ: elf.SHT_PROGBITS, flags: elf.SHF_EXECINSTR, data: entry},
		{name: ".relkprobe/f", typ: elf.SHT_REL, link: 6, info: 4, size: 16, data: entryRel.Bytes()},
		{name: ".symtab", typ: elf.SHT_SYMTAB, link: 7, info: 1, size: 24, data: syms.Bytes()},
		{name: ".strtab", typ: elf.SHT_STRTAB},
	}
	var out, table bytes.Buffer
	off := uint64(64)
	for i := range sections {
		s := &sections[i]
		name := str(s.name)
		if s.typ == elf.SHT_STRTAB {
			s.data = strs.Bytes()
		}
		_ = binary.Write(&table, le, elf.Section64{
			Name: name, Type: uint32(s.typ), Flags: uint64(s.flags), Off: off, Size: uint64(len(s.data)), Link: s.link, Info: s.info, Entsize: s.size,
		})
		off += uint64(len(s.data))
	}
	h := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1}, Type: uint16(elf.ET_REL), Machine: uint16(elf.EM_BPF),
		Version: 1, Ehsize: 64, Shoff: off, Shentsize: 64, Shnum: uint16(len(sections)), Shstrndx: uint16(len(sections) - 1),
	}
	_ = binary.Write(&out, le, h)
	for i := range sections {
		out.Write(sections[i].data)
	}
	return append(out.Bytes(), table.Bytes()...)
}

// chainRecords has a record in each function of chain, by section.
func chainRecords(n int) (records []Record) {
	for i := range n {
		records = append(records, Record{Section: ".text", Insn: 4*i + 2})
	}
	return records
}

// TestChain parses a long chain of calls: every function is of the program.
func TestChain(t *testing.T) {
	const n = 3000
	o, err := Parse(chain(n), nil, chainRecords(n))
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Funcs) != n+1 || len(o.Programs) != 1 || o.Programs[0].Funcs[n] != n-1 || len(o.Programs[0].Records) != n {
		t.Fatalf("%d functions, programs %+v", len(o.Funcs), o.Programs)
	}
	for i := range n {
		load, call := &o.Funcs[i].Insns[0], &o.Funcs[i].Insns[2]
		if load.Ref != (Ref{RefData, 0, int64(8 * i)}) || o.Data[0].Variable(load.Ref.Off+7) != fmt.Sprintf("v%d", i) {
			t.Fatalf("function %d loads %+v", i, load.Ref)
		}
		if call.Ref != (Ref{RefFunc, int32(min(i+1, n-1)), 0}) || o.Sites[i] != (Site{i, 2}) {
			t.Fatalf("function %d calls %+v, its record is at %+v", i, call.Ref, o.Sites[i])
		}
	}
}

// BenchmarkParse is of an object of many functions, relocations and records.
func BenchmarkParse(b *testing.B) {
	for _, n := range []int{2_000, 20_000} {
		data, records := chain(n), chainRecords(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(data, nil, records); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/function")
		})
	}
}

// BenchmarkDecode compares decode with package asm's.
func BenchmarkDecode(b *testing.B) {
	code := chain(20_000)[64:][:20_000*32] // .text
	b.Run("own", func(b *testing.B) {
		b.SetBytes(int64(len(code)))
		b.ReportAllocs()
		for b.Loop() {
			decode(code, binary.LittleEndian)
		}
	})
	b.Run("asm", func(b *testing.B) {
		b.SetBytes(int64(len(code)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := asm.AppendInstructions(nil, bytes.NewReader(code), binary.LittleEndian, "linux"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
