// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/testelf"
)

var (
	le = binary.LittleEndian
	be = binary.BigEndian
)

// Sizes of structures of a 64-bit ELF file, bytes.
const headerSize, sectionSize = 64, 64

func TestFindLone(t *testing.T) {
	tests := []struct {
		name string
		file testelf.File
	}{
		{"little endian", testelf.File{Order: le, Machine: elf.EM_BPF}},
		{"big endian", testelf.File{Order: be, Machine: elf.EM_BPF}},
		{"section data last", testelf.File{Order: le, Machine: elf.EM_BPF, Tail: true}},
		{"counts in section 0", testelf.File{Order: le, Machine: elf.EM_BPF, Extended: true}},
		{"program headers", testelf.File{Order: le, Machine: elf.EM_BPF, Phnum: 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			obj := object64(tt.file, "code")
			for _, trailing := range []string{"", "rest", magic} {
				got, err := Find([]byte(string(obj) + trailing))
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != 1 || got[0].Name != "" || got[0].Offset != 0 || !bytes.Equal(got[0].Data, obj) {
					t.Errorf("%d objects, want the one", len(got))
				}
			}
		})
	}
}

// TestFindTruncated checks that a lone object that is cut short is an error other than ErrNone.
func TestFindTruncated(t *testing.T) {
	for _, f := range []testelf.File{
		{Order: le, Machine: elf.EM_BPF}, {Order: be, Machine: elf.EM_BPF, Tail: true},
	} {
		obj := object64(f, "code")
		for n := len(magic); n < len(obj); n++ {
			got, err := Find(obj[:n])
			if err == nil || errors.Is(err, ErrNone) {
				t.Fatalf("%d of %d bytes: %d objects, error %v", n, len(obj), len(got), err)
			}
		}
	}
}

func TestFindDamaged(t *testing.T) {
	patch := func(at int, b ...byte) func([]byte) {
		return func(d []byte) { copy(d[at:], b) }
	}
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	tests := []struct {
		name  string
		patch func([]byte)
		want  string
	}{
		{"class", patch(elf.EI_CLASS, 7), "unknown class 7"},
		{"32-bit", patch(elf.EI_CLASS, 1), "32-bit ELF, want 64-bit"},
		{"byte order", patch(elf.EI_DATA, 9), "unknown byte order 9"},
		{"ident version", patch(elf.EI_VERSION, 0), "unknown ELF version"},
		{"version", patch(20, 2), "unknown ELF version 2"},
		{"type", patch(16, byte(elf.ET_EXEC)), "ELF type 2, want 1 (relocatable)"},
		{"no sections", patch(40, make([]byte, 8)...), "no section header table"},
		{"table beyond the end", patch(40, huge...), "section header table at 0x7fffffffffffffff: beyond the end"},
		{"entry size", patch(58, 63), "section headers of 63 bytes, want 64"},
		{"entries", patch(60, 200), "200 entries reach beyond the end"},
		{"section offset", func(d []byte) { copy(d[le.Uint64(d[40:])+64+24:], huge) }, "section 1 at 0x7fffffffffffffff"},
		{"section size", func(d []byte) { copy(d[le.Uint64(d[40:])+64+32:], huge) }, "section 1 at 0x40, 9223372036854775807 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			obj := bpf(le, "code")
			tt.patch(obj)
			got, err := Find(obj)
			if err == nil || errors.Is(err, ErrNone) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("alone: %d objects, error %v, want %q", len(got), err, tt.want)
			}
			if tt.name == "32-bit" { // its fields are elsewhere, so the damage differs
				return
			}
			_, err = Find(append([]byte("host"), obj...))
			if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "a damaged one at offset 0x4") {
				t.Errorf("embedded: error %v", err)
			}
		})
	}
}

func TestFindNone(t *testing.T) {
	x86, _ := (&testelf.File{Order: le, Type: elf.ET_EXEC, Machine: elf.EM_X86_64}).Build()
	rel, _ := (&testelf.File{Order: le, Type: elf.ET_REL}).Build()
	for name, data := range map[string][]byte{
		"empty":            nil,
		"text":             []byte("no object"),
		"executable":       x86,
		"no machine":       rel,
		"magic at the end": []byte("x" + magic),
		"magic in text":    []byte("x" + magic + strings.Repeat("y", 100)),
	} {
		if got, err := Find(data); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %d objects, error %v, want %v", name, len(got), err, ErrNone)
		}
	}
}

func TestFindEmbedded(t *testing.T) {
	a, b, c := bpf(le, "first"), bpf(be, "second"), object64(testelf.File{Order: le, Machine: elf.EM_BPF, Tail: true}, "third")
	cut := a[:len(a)-1]
	inner := object64(testelf.File{Order: le, Machine: elf.EM_BPF, Sections: []testelf.Section{{Name: ".rodata", Data: b}}}, "outer")

	type found struct {
		name   string
		offset int
		data   []byte
	}
	tests := []struct {
		name string
		data [][]byte
		want []found
	}{
		{"several", [][]byte{[]byte("host"), a, []byte("."), b, c},
			[]found{{"#1", 4, a}, {"#2", 5 + len(a), b}, {"#3", 5 + len(a) + len(b), c}}},
		{"identical", [][]byte{[]byte("host"), a, a, b, a},
			[]found{{"#1", 4, a}, {"#2", 4 + 2*len(a), b}}},
		{"chance magic before", [][]byte{[]byte("h" + magic + magic), a},
			[]found{{"", 9, a}}},
		{"damaged before", [][]byte{[]byte("h"), a[:headerSize], b},
			[]found{{"", 1 + headerSize, b}}},
		{"cut at the end", [][]byte{[]byte("h"), b, cut},
			[]found{{"", 1, b}}},
		{"one within another", [][]byte{[]byte("h"), inner, c},
			[]found{{"#1", 1, inner}, {"#2", 1 + len(inner), c}}},
		{"concatenated", [][]byte{a, b},
			[]found{{"#1", 0, a}, {"#2", len(a), b}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Find(bytes.Join(tt.data, nil))
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(tt.want) {
				t.Fatalf("%d objects, want %d", len(got), len(tt.want))
			}
			for i, w := range tt.want {
				if g := got[i]; g.Name != w.name || g.Offset != w.offset || !bytes.Equal(g.Data, w.data) {
					t.Errorf("object %d: %s at %d, %d bytes; want %s at %d, %d bytes",
						i, g.Name, g.Offset, len(g.Data), w.name, w.offset, len(w.data))
				}
				if cap(got[i].Data) != len(got[i].Data) {
					t.Errorf("object %d: appending to it would overwrite the file", i)
				}
			}
		})
	}
}

// TestFindBudget bounds the time for thousands of headers that share one long section header table with a bad last
// entry.
func TestFindBudget(t *testing.T) {
	const headers, sections = 50_000, 60_000
	table := headers * headerSize
	data := make([]byte, table+sections*sectionSize)
	for i := range headers {
		h := data[i*headerSize:]
		copy(h, bpf(le, "")[:headerSize])
		le.PutUint64(h[40:], uint64(table-i*headerSize))
		le.PutUint16(h[60:], sections)
	}
	last := data[len(data)-sectionSize:]
	le.PutUint32(last[4:], uint32(elf.SHT_PROGBITS))
	le.PutUint64(last[24:], 1<<40)

	host := append([]byte("host"), data...)
	if _, err := Find(host); !errors.Is(err, errBudget) {
		t.Errorf("error %v, want %v", err, errBudget)
	}

	// Intact, they are one object: the first, which ends with the table.
	le.PutUint64(host[len(host)-sectionSize+24:], 0)
	got, err := Find(host)
	if err != nil || len(got) != 1 || got[0].Offset != 4 || len(got[0].Data) != len(data) {
		t.Errorf("%d objects, error %v, want one", len(got), err)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	obj := bpf(le, "code")
	lone, host := write("lone.o", obj), write("host", append([]byte("host"), obj...))

	for path, name := range map[string]string{lone: "", host: ""} {
		got, err := ReadFile(path)
		if err != nil || len(got) != 1 || got[0].Name != name || !bytes.Equal(got[0].Data, obj) {
			t.Errorf("%s: %d objects, error %v", path, len(got), err)
		}
	}

	sparse := write("sparse", nil)
	if err := os.Truncate(sparse, limits.FileBytes+1); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, want string }{
		{sparse, "sparse: larger than 1073741824 bytes"},
		{write("none", []byte("text")), "none: no BPF object inside"},
		{write("cut.o", obj[:99]), "cut.o: damaged BPF object: section header table"},
		{filepath.Join(dir, "absent"), "absent: no such file"},
		{dir, dir + ": is a directory"},
	} {
		if got, err := ReadFile(tt.path); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %d objects, error %v, want %q", tt.path, len(got), err, tt.want)
		}
	}
	if _, err := ReadFile(filepath.Join(dir, "none")); !errors.Is(err, ErrNone) {
		t.Errorf("error %v, want %v", err, ErrNone)
	}
}

// TestReadFileUnsized reads a pipe, which has no size.
func TestReadFileUnsized(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.Write(bpf(le, "code")); err != nil {
		t.Fatal(err)
	}
	w.Close()
	path := fmt.Sprintf("/dev/fd/%d", r.Fd())
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs %s", path)
	}
	if got, err := ReadFile(path); err != nil || len(got) != 1 {
		t.Errorf("%d objects, error %v", len(got), err)
	}
}
