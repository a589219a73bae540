// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testbtf"
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
	const differ = "loaders do not agree on the flavor of "
	want := []string{
		"byte_off struct s___a___b.a: " + differ + `s___a___b: libbpf takes any "s___a", cilium/ebpf "s___a", aya "s"`,
		"enumval_value enum e::A____x: " + differ + `A____x: libbpf takes any "A____x", cilium/ebpf "A_", aya "A"`,
		"enumval_exists enum e::___C: " + differ + `___C: libbpf takes any "___C", cilium/ebpf "___C", aya ""`,
	}
	var got []string
	for _, x := range Disputed(o.records.Object) {
		for _, s := range x.Subjects {
			got = append(got, s+": "+x.Reason)
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
		if f.Topic == TopicExternal {
			notes = append(notes, f.Subject+": "+f.Reason)
		}
	}
	slices.Sort(want)
	slices.Sort(notes)
	if !slices.Equal(notes, want) {
		t.Errorf("notes %q, want %q", notes, want)
	}
}
