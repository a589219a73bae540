// SPDX-License-Identifier: Apache-2.0

package embedded

import (
	"bytes"
	"debug/elf"
	"errors"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testelf"
)

func FuzzFind(f *testing.F) {
	a, b := bpf(le, "first"), bpf(be, "second")
	f.Add(a)
	f.Add(a[:len(a)-1])
	f.Add(object64(testelf.File{Order: le, Machine: elf.EM_BPF, Extended: true, Tail: true}, "old"))
	f.Add(slices.Concat([]byte("host"), a, []byte(magic), b, a))
	exe, at := (&testelf.File{Order: le, Type: elf.ET_DYN, Machine: elf.EM_X86_64,
		Sections: []testelf.Section{{Name: ".rodata", Addr: 0x1000, Data: append(bytes.Clone(a), b...)}},
		Symbols:  []testelf.Symbol{sym("first", 0, 0, uint64(len(a))), sym("second", 0, uint64(len(a)), uint64(len(b)))}}).Build()
	if !bytes.HasPrefix(exe[at[0]:], a) {
		f.Fatal("seed without its object")
	}
	f.Add(exe)

	f.Fuzz(func(t *testing.T, data []byte) {
		objs, err := Find(data)
		if (err == nil) != (len(objs) > 0) {
			t.Fatalf("%d objects, error %v", len(objs), err)
		}
		end, names := 0, map[string]bool{}
		for _, o := range objs {
			if o.Offset < end {
				t.Fatalf("object at %d overlaps one that ends at %d", o.Offset, end)
			}
			end = o.Offset + len(o.Data)
			if !bytes.Equal(o.Data, data[o.Offset:end]) {
				t.Fatalf("object at %d is not what the file holds", o.Offset)
			}
			if names[o.Name] {
				t.Fatalf("two objects are called %q", o.Name)
			}
			names[o.Name] = true

			again, err := Find(o.Data)
			if err != nil || len(again) != 1 || again[0].Name != "" || len(again[0].Data) != len(o.Data) {
				t.Fatalf("object at %d alone: %d objects, error %v", o.Offset, len(again), err)
			}
		}
	})
}

// FuzzDescribe wants a kind in words for whatever is described, also in Find's error.
func FuzzDescribe(f *testing.F) {
	for _, seed := range []string{"", "\x1f\x8b\x08", "version https://git-lfs.github.com/spec/v1", "#include <x.h>\n\xc3", "!<arch>\ndebian-binary", "btfc"} {
		f.Add([]byte(seed))
	}
	for _, kind := range []elf.Type{elf.ET_REL, elf.ET_EXEC} {
		exe, _ := (&testelf.File{Order: be, Type: kind, Machine: elf.EM_S390,
			Sections: []testelf.Section{{Name: ".modinfo", Data: []byte("\x00vermagic=6.1 Linux version 6.1")}}}).Build()
		f.Add(exe)
		f.Add(exe[:HeadBytes])
		f.Add(exe[:HeadBytes-1])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		kind := Describe(data)
		if kind == nil {
			return
		}
		if kind.What == "" || kind.Lost && kind.Fix == "" {
			t.Fatalf("%+v", kind)
		}
		var none noneError
		if _, err := Find(data); errors.As(err, &none) && *none.Other != *kind {
			t.Fatalf("%v, want %s", err, kind.What)
		}
	})
}
