// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestDisputed wants a note on each name whose flavor loaders do not agree on, and on no other.
func TestDisputed(t *testing.T) {
	data := testbtf.Object(t, binary.LittleEndian, "struct s___x 4: a int 0\nstruct s___a___b 4: a int 0\nenum e 4: A____x 0, B 1, ___C 2",
		"byte_off struct s___x.a\nbyte_off struct s___a___b.a\nbyte_off struct s___a___b.a\nenumval_value enum e::B\nenumval_value enum e::A____x\nenumval_exists enum e::___C\nlocal_type_id struct s___a___b")
	o, err := Parse(t.Context(), "o", data)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"byte_off struct s___a___b.a: flavor-disputed s___a___b s___a,s___a,s",
		"enumval_value enum e::A____x: flavor-disputed A____x A____x,A_,A",
		"enumval_exists enum e::___C: flavor-disputed ___C ___C,___C,",
	}
	var got []string
	for _, x := range Externals(o.records.Object) {
		for _, s := range x.Subjects {
			got = append(got, s+": "+fmt.Sprint(x.Code, " ", x.Name, " ", x.Names))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	r := newRun(Config{Objects: []*Object{o}})
	r.item(t.Context(), new(target), &corpus.Kernel{Key: kernel.Key{ID: "k", Arch: "x86_64", Release: "6.1"}, BTF: testbtf.Types(t, binary.LittleEndian, "enum e 4: B 1")})
	rep, err := r.report(t.Context())
	if err != nil || len(rep.Programs) != 1 {
		t.Fatalf("%v, %v", rep, err)
	}
	var notes []string
	for _, f := range rep.Programs[0].Notes {
		notes = append(notes, f.Relocation+" "+f.Subject+": "+fmt.Sprint(f.Code, " ", f.Name, " ", f.Names))
	}
	slices.Sort(want)
	slices.Sort(notes)
	if !slices.Equal(notes, want) {
		t.Errorf("notes %q, want %q", notes, want)
	}
}
