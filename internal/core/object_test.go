// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

func read(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("../../testdata/bpf", name))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func TestEmptyObjects(t *testing.T) {
	for name, want := range map[string]string{
		"nobtf.bpfel.o":  "no .BTF section: compile with -g, and strip with llvm-strip -g, which keeps types",
		"noext.bpfeb.o":  "no .BTF.ext section, which clang --target=bpf -g writes",
		"norelo.bpfel.o": "no CO-RE relocations", "kinds.bpfel.o": "",
	} {
		o, err := core.ParseObject(name, read(t, name))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if why := o.Empty(); why != nil {
			got = why.Error()
		}
		if got != want || (o.Len() == 0) != (want != "") {
			t.Errorf("%s: %q, %d relocations", name, o.Empty(), o.Len())
		}
	}
}

// TestDamagedObjects wants an error with the object's name and the cause.
func TestDamagedObjects(t *testing.T) {
	le := binary.LittleEndian
	good := read(t, "runqlat.bpfel.o")
	for _, tc := range []struct {
		name string
		edit func([]byte) []byte
		want string
	}{
		{"empty", func(b []byte) []byte { return nil }, "x.o: elf: file is cut short"},
		{"cut short", func(b []byte) []byte { return b[:len(b)/2] }, "x.o: elf: "},
		{"machine", func(b []byte) []byte { le.PutUint16(b[18:], 62); return b }, "x.o: elf: not a BPF object"},
		{"sections beyond", func(b []byte) []byte { le.PutUint64(b[40:], 1<<40); return b }, "x.o: elf: "},
		{"names", func(b []byte) []byte {
			// The table of names is the last section, and every section a name.
			le.PutUint64(b[le.Uint64(b[40:])+64*uint64(le.Uint16(b[62:]))+32:], 1<<40)
			return b
		}, "x.o: elf: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, err := core.ParseObject("x.o", tc.edit(append([]byte(nil), good...)))
			if o != nil || err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestOtherByteOrder wants what cannot be loaded to be refused.
func TestOtherByteOrder(t *testing.T) {
	le, err := core.ParseObject("le", read(t, "kinds.bpfel.o"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := core.NewSet(le).Run(t.Context(), ownTypes(t, "kinds.bpfeb.o")); !errors.Is(err, core.ErrByteOrder) {
		t.Errorf("little-endian object on a big-endian kernel: %v", err)
	}
}

// ownTypes makes the types of an object a kernel.
func ownTypes(t *testing.T, name string) *core.Target {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(read(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := f.Section(".BTF").Data()
	if err != nil {
		t.Fatal(err)
	}
	target, err := testinput.NewKernel(name, raw)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// TestOnItself relocates objects against their own types: whatever the
// relocation is, both sides then have the same value.
func TestOnItself(t *testing.T) {
	paths, _ := filepath.Glob("../../testdata/bpf/*.o")
	resolved := 0
	kinds := make(map[relo.Kind]bool)
	for _, p := range paths {
		o, err := core.ParseObject(filepath.Base(p), read(t, filepath.Base(p)))
		if err != nil {
			t.Fatal(err)
		}
		if o.Empty() != nil {
			continue
		}
		l, err := core.NewSet(o).Run(t.Context(), ownTypes(t, filepath.Base(p)))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range l.Entries {
			// Flavors of a type are candidates for each other.
			if e.Result != relo.Resolved || len(e.Candidates) > 1 {
				continue
			}
			if resolved++; *e.New != e.Old {
				t.Errorf("%s: %s #%d: %s %s.%s: %d becomes %d", e.Object, e.Section, e.Index, e.Kind, e.Local.Type, e.Local.Path, e.Old, *e.New)
			}
			kinds[e.Kind] = true
		}
	}
	if resolved == 0 || len(kinds) != 13 {
		t.Errorf("%d resolved, kinds %v", resolved, kinds)
	}
}
