// SPDX-License-Identifier: Apache-2.0

package minimize_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/pkg/minimize"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// TestExampleOfDoc minimizes the types of the example in the package's
// documentation, among others, for the object in it.
func TestExampleOfDoc(t *testing.T) {
	o, err := relolog.ParseObject("x.bpf.o", testbtf.Object(t, binary.LittleEndian, "int char 1\nstruct pgd_t 8: pgd u64 0\n"+
		"struct mm_struct 8: pgd *pgd_t 0\nstruct task_struct 24: mm *mm_struct 0, comm char[16] 8",
		"byte_off struct task_struct.mm\nbyte_off struct mm_struct.pgd\nbyte_off struct task_struct.comm"))
	if err != nil {
		t.Fatal(err)
	}
	k, err := relolog.NewTarget(t.Context(), "kernel", testbtf.Types(t, binary.LittleEndian,
		"struct list_head 16: next *list_head 0, prev *list_head 8\nint char 1\nstruct pgd_t 8: pgd u64 0\n"+
			"struct #mm 1344: mmap u64 0, pgd *pgd_t 80, users int 88\nstruct mm_struct 1344: #mm #mm 0, bitmap u64[2] 1328\n"+
			"struct task_struct 9792: tasks list_head 1000, mm *mm_struct 2336, comm char[16] 3000, fs *list_head 3016"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := minimize.New([]*relolog.Object{o}, minimize.Options{}).Minimize(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	b, err := btf.New(res.BTF, nil)
	if err != nil {
		t.Fatal(err)
	}
	kinds := make(map[btf.Kind]int)
	for id := btf.TypeID(1); int(id) < b.NumTypes(); id++ {
		typ := b.Type(id)
		kinds[typ.Kind()]++
		want, named := map[string]struct{ size, members uint32 }{"task_struct": {9792, 2}, "mm_struct": {1344, 1}, "": {1344, 1}}[string(typ.Name())]
		switch typ.Kind() {
		case btf.KindStruct:
			if !named || typ.Size() != want.size || uint32(typ.Vlen()) != want.members {
				t.Errorf("struct %q: %d bytes, %d members", typ.Name(), typ.Size(), typ.Vlen())
			}
		case btf.KindPtr:
			if typ.Ref() != 0 {
				t.Errorf("pointer to type %d", typ.Ref())
			}
		case btf.KindArray:
			if typ.Array().Nelems != 16 {
				t.Errorf("array of %d", typ.Array().Nelems)
			}
		}
	}
	if kinds[btf.KindStruct] != 3 || kinds[btf.KindPtr] != 1 || kinds[btf.KindArray] != 1 || kinds[btf.KindInt] != 1 || b.NumTypes() != 7 {
		t.Errorf("%d types, %v", b.NumTypes(), kinds)
	}
}

// TestWithout minimizes without objects, and for one without relocations.
func TestWithout(t *testing.T) {
	k, err := relolog.NewTarget(t.Context(), "kernel", testbtf.Types(t, binary.LittleEndian, "struct task 4: pid int 0"))
	if err != nil {
		t.Fatal(err)
	}
	none, err := relolog.ParseObject("x.bpf.o", testbtf.Object(t, binary.LittleEndian, "struct task 4: pid int 0", ""))
	if err != nil || none.Empty() == nil {
		t.Fatal(none.Empty(), err)
	}
	keep, err := minimize.ParseKeep("struct:task")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		objects []*relolog.Object
		keep    *minimize.Keep
		types   int
		err     error
	}{
		{"neither", nil, nil, 0, minimize.ErrNoObject},
		{"types to keep", nil, keep, 2, nil},
		{"no relocations", []*relolog.Object{none}, nil, 0, nil},
		{"no relocations, types to keep", []*relolog.Object{none}, keep, 2, nil},
	} {
		res, err := minimize.New(tt.objects, minimize.Options{Keep: tt.keep}).Minimize(t.Context(), k)
		if !errors.Is(err, tt.err) {
			t.Errorf("%s: error %v", tt.name, err)
		}
		if err != nil {
			continue
		}
		b, err := btf.New(res.BTF, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := b.NumTypes() - 1; n != tt.types {
			t.Errorf("%s: %d types, want %d", tt.name, n, tt.types)
		}
	}
}
