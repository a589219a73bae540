// SPDX-License-Identifier: Apache-2.0

package testelf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"
)

// TestBuild reads the result of Build with debug/elf.
func TestBuild(t *testing.T) {
	for _, class32 := range []bool{false, true} {
		for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
			f := File{Order: order, Class32: class32, Type: elf.ET_EXEC, Machine: elf.EM_MIPS,
				Sections: []Section{
					{Name: ".data", Addr: 0x1000, Data: []byte("abc")},
					{Name: ".rel.data", Type: elf.SHT_REL, Info: 1, Data: make([]byte, 16)},
				},
				Symbols: []Symbol{{"x", 0, 1, 2, 0}, {"y", 0, 2, 1, elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)}}}
			d, _ := f.Build()
			e, err := elf.NewFile(bytes.NewReader(d))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := e.Section(".data").Data(); err != nil || string(got) != "abc" {
				t.Errorf("section: %q, %v", got, err)
			}
			syms, err := e.Symbols()
			if err != nil || len(syms) != 2 || syms[0].Name != "x" || syms[0].Value != 0x1001 || syms[0].Size != 2 ||
				syms[1].Name != "y" || elf.ST_BIND(syms[1].Info) != elf.STB_GLOBAL {
				t.Errorf("symbols: %+v, %v", syms, err)
			}
			table, rel := e.Section(".symtab"), e.Section(".rel.data")
			if table.Info != 2 || e.Sections[rel.Link] != table || rel.Info != 1 || rel.Entsize == 0 {
				t.Errorf("links: %+v, %+v", table.SectionHeader, rel.SectionHeader)
			}
		}
	}
}
