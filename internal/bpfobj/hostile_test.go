// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testelf"
)

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// function is a global function at the beginning of a section.
func function(name string, section int, at uint64) testelf.Symbol {
	return testelf.Symbol{Name: name, Section: section, At: at, Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC)}
}

var (
	callNext = []byte{byte(OpCall), 0x10, 0, 0, 1, 0, 0, 0} // the function after the next instruction
	exitInsn = []byte{byte(OpExit), 0, 0, 0, 0, 0, 0, 0}
)

// small is an object of one program, with further sections and symbols.
func small(sections []testelf.Section, syms []testelf.Symbol) []byte {
	return object(append([]testelf.Symbol{function("f", 0, 0)}, syms...),
		append([]testelf.Section{{Name: "kprobe/f", Flags: elf.SHF_EXECINSTR, Data: exitInsn}}, sections...))
}

// over has n headers of one section, which share the bytes of the last.
func over(n int, s testelf.Section) []testelf.Section {
	out := make([]testelf.Section, n)
	for i := range out {
		out[i] = s
		if i < n-1 {
			out[i].Data, out[i].Size = nil, uint64(len(s.Data))
		}
	}
	return out
}

// chained is a section of programs that each call the next.
func chained(n int) []byte {
	var code []byte
	var syms []testelf.Symbol
	for i := range n {
		syms = append(syms, function(fmt.Sprintf("p%d", i), 0, uint64(len(code))))
		if i < n-1 {
			code = append(code, callNext...)
		}
		code = append(code, exitInsn...)
	}
	return object(syms, []testelf.Section{{Name: "kprobe/f", Flags: elf.SHF_EXECINSTR, Data: code}})
}

// longNames is an object with n symbols whose names are parts of the same size bytes: each begins one byte later.
func longNames(n, size int) []byte {
	names := strings.Repeat("x", size)
	syms := []testelf.Symbol{function(names, 0, 0)}
	for range n {
		syms = append(syms, testelf.Symbol{Name: "y"})
	}
	data := small(nil, syms)
	f := mustELF(data)
	table := data[f.Section(".symtab").Offset:]
	for i := range n {
		f.ByteOrder.PutUint32(table[24*(3+i):], f.ByteOrder.Uint32(table[24*2:])+uint32(i%2000))
	}
	return data
}

// compressed is a compressed section of n bytes: text, and then zeros.
func compressed(n int, text string) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, elf.Chdr64{Type: uint32(elf.COMPRESS_ZLIB), Size: uint64(n), Addralign: 1})
	w := zlib.NewWriter(&b)
	_, _ = w.Write(append([]byte(text), make([]byte, n-len(text))...))
	_ = w.Close()
	return b.Bytes()
}

// sectionNames is an object of 20 sections with this table of their names.
func sectionNames(flags elf.SectionFlag, table []byte) []byte {
	const size = 64 // of a section header
	data := small(over(20, testelf.Section{Name: "x", Data: []byte{1}}), nil)
	le := binary.LittleEndian
	headers := data[le.Uint64(data[40:]):]
	for i := range le.Uint16(data[60:]) {
		le.PutUint32(headers[size*int(i):], 0) // all at the beginning
	}
	h := headers[size*int(le.Uint16(data[62:])):]
	le.PutUint64(h[8:], uint64(flags))
	le.PutUint64(h[24:], uint64(len(data)))
	le.PutUint64(h[32:], uint64(len(table)))
	return append(data, table...)
}

// hostile are objects that need far more memory than their size suggests, or exceed a limit, with the error.
var hostile = map[string]struct {
	make func() []byte
	says string
}{
	"2000 .rodata": {func() []byte {
		return small(over(2000, testelf.Section{Name: ".rodata", Data: make([]byte, 8<<20)}), nil)
	}, ""},
	"2000 NOBITS": {func() []byte {
		return small(over(2000, testelf.Section{Name: ".rodata", Type: elf.SHT_NOBITS, Size: 64 << 20}), nil)
	}, ""},
	"200 executable": {func() []byte {
		var syms []testelf.Symbol
		for i := range 200 {
			syms = append(syms, function(fmt.Sprintf("g%d", i), 1+i, 0))
		}
		return small(over(200, testelf.Section{Name: "kprobe/g", Flags: elf.SHF_EXECINSTR, Data: make([]byte, 1<<20)}), syms)
	}, "kprobe/g: too large: more than 1048576 instructions"},
	"20 compressed": {func() []byte {
		return small(over(20, testelf.Section{Name: ".rodata", Flags: elf.SHF_COMPRESSED, Data: compressed(40<<20, "")}), nil)
	}, ".rodata: compressed section"},
	"200 relocated": {func() []byte {
		return small(over(200, testelf.Section{Name: ".rel", Type: elf.SHT_REL, Info: 1, Data: make([]byte, 4<<20)}), nil)
	}, ".rel: too large: more than 1048576 relocations"},
	"30,000 sections": {func() []byte {
		return small(over(30_000, testelf.Section{Name: "x", Data: []byte{1}}), nil)
	}, "elf: sections: too large: more than 8192 sections"},
	"long names of sections": {func() []byte {
		return sectionNames(0, append(bytes.Repeat([]byte("x"), 16<<20), 0))
	}, "elf: too large: more than 67108864 bytes of names of sections"},
	"compressed names of sections": {func() []byte {
		return sectionNames(elf.SHF_COMPRESSED, compressed(16<<20, strings.Repeat("x", 15<<20)))
	}, "elf: compressed names of sections"},
	"20,000 long names":        {func() []byte { return longNames(20_000, 4000) }, ".symtab: too large: more than 33554432 bytes of names"},
	"a name":                   {func() []byte { return longNames(1, 1<<20) }, ".symtab: too large: more than 4096 bytes in a name"},
	"20,000 programs in a row": {func() []byte { return chained(20_000) }, "kprobe/f: too large: more than 8192 programs"},
	"8,000 programs in a row":  {func() []byte { return chained(8000) }, "p132: too large: more than 1048576 functions that programs call"},
	"70,000 functions":         {func() []byte { return chain(70_000) }, ".text: too large: more than 65536 functions"},
	"60,000 functions":         {func() []byte { return chain(60_000) }, ""},
}

func mustELF(data []byte) *elf.File {
	f, err := elf.NewFile(strings.NewReader(string(data)))
	if err != nil {
		panic(err)
	}
	return f
}

// TestHostile bounds the memory for hostile objects.
func TestHostile(t *testing.T) {
	slow.Skip(t)
	raceflag.SkipSerial(t)
	for name, h := range hostile {
		data := h.make()
		n := allocated(func() {
			_, err := parse(t.Context(), data)
			if err == nil && h.says != "" || err != nil && err.Error() != h.says {
				t.Errorf("%s: %v, want %q", name, err, h.says)
			}
		})
		if n > 250<<20 {
			t.Errorf("%s: %d bytes allocated for %d", name, n, len(data))
		}
	}
}
