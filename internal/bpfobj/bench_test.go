// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/testelf"
)

// chain makes an object with n functions, where each calls the next and reads a variable of its own, by relocations. A
// program calls the first.
func chain(n int) []byte {
	const text, variables, entry = 0, 2, 3 // sections
	var code, rel []byte
	var syms []testelf.Symbol
	call := []byte{byte(OpCall), 0x10, 0, 0, 0xff, 0xff, 0xff, 0xff}
	exit := []byte{byte(OpExit), 0, 0, 0, 0, 0, 0, 0}
	for i := range n {
		syms = append(syms, testelf.Symbol{Name: fmt.Sprintf("f%d", i), Section: text, At: uint64(len(code)), Size: 32, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)})
		rel = relocate(rel, len(code), n+1+i)
		code = append(code, byte(OpLdImm64), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
		rel = relocate(rel, len(code), min(i+2, n))
		code = append(append(code, call...), exit...)
	}
	for i := range n {
		syms = append(syms, testelf.Symbol{Name: fmt.Sprintf("v%d", i), Section: variables, At: uint64(8 * i), Size: 8, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_OBJECT)})
	}
	syms = append(syms, testelf.Symbol{Name: "entry", Section: entry, Size: 16, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)})
	return object(syms, []testelf.Section{
		text:      {Name: ".text", Flags: elf.SHF_EXECINSTR, Data: code},
		1:         {Name: ".rel.text", Type: elf.SHT_REL, Info: text + 1, Data: rel},
		variables: {Name: ".rodata", Data: make([]byte, 8*n)},
		entry:     {Name: "kprobe/f", Flags: elf.SHF_EXECINSTR, Data: append(append([]byte(nil), call...), exit...)},
		4:         {Name: ".relkprobe/f", Type: elf.SHT_REL, Info: entry + 1, Data: relocate(nil, 0, 1)},
	})
}

// object makes a little-endian BPF object.
func object(syms []testelf.Symbol, sections []testelf.Section) []byte {
	f := testelf.File{Order: binary.LittleEndian, Type: elf.ET_REL, Machine: elf.EM_BPF, Sections: sections, Symbols: syms}
	data, _ := f.Build()
	return data
}

// relocate appends the relocation of the instruction at an offset. Symbols are numbered from 1.
func relocate(rel []byte, at, sym int) []byte {
	rel = binary.LittleEndian.AppendUint64(rel, uint64(at))
	return binary.LittleEndian.AppendUint64(rel, elf.R_INFO(uint32(sym), 10))
}

// parse parses an object whose CO-RE records are replaced, if there are any.
func parse(ctx context.Context, data []byte, records ...*ExtSection) (*Code, error) {
	f, err := Open(data)
	if err != nil {
		return nil, err
	}
	if len(records) > 0 {
		f.Ext = &Ext{Sections: records}
	}
	return f.Parse(ctx)
}

// chainRecords has a record in each function of chain.
func chainRecords(n int) *ExtSection {
	s := &ExtSection{Name: ".text"}
	for i := range n {
		s.Records = append(s.Records, Record{CoreRecord: btf.CoreRecord{Off: uint32(8 * (4*i + 2))}})
	}
	return s
}

// TestChain parses a long chain of calls: every function belongs to the program.
func TestChain(t *testing.T) {
	const n = 3000
	o, err := parse(t.Context(), chain(n), chainRecords(n))
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Funcs) != n+1 || len(o.Programs) != 1 || o.Programs[0].Funcs[n] != n-1 || len(o.Programs[0].Records) != n {
		t.Fatalf("%d functions, programs %+v", len(o.Funcs), o.Programs)
	}
	for i := range n {
		load, call := &o.Funcs[i].Insns[0], &o.Funcs[i].Insns[2]
		if load.Ref != RefTo(RefData, 0) || load.Imm != int64(8*i) || o.Data[0].Variable(load.Imm+7) != fmt.Sprintf("v%d", i) {
			t.Fatalf("function %d loads %+v", i, load)
		}
		if call.Ref != RefTo(RefFunc, min(i+1, n-1)) || o.Sites[i] != (Site{i, 2}) {
			t.Fatalf("function %d calls %+v, its record is at %+v", i, call, o.Sites[i])
		}
	}
}

// BenchmarkParse parses an object with many functions, relocations and records.
func BenchmarkParse(b *testing.B) {
	for _, n := range []int{2_000, 20_000} {
		data, records := chain(n), chainRecords(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parse(b.Context(), data, records); err != nil {
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
