// SPDX-License-Identifier: Apache-2.0

package bpfobj_test

import (
	"os"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// TestStructOpsFunctions wants the function of each member of a struct_ops that has one, and of no other member: the name of those in cornerops.bpf.c
// comes first.
func TestStructOpsFunctions(t *testing.T) {
	data, err := os.ReadFile("../../testdata/bpf/cornerops.bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	f, err := bpfobj.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	o, err := f.Parse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range o.StructOps {
		if len(m.Funcs) != len(m.Members) || len(m.Members) != 4 {
			t.Errorf("%s: members %v, functions %v", m.Name, m.Members, m.Funcs)
			continue
		}
		for i, member := range m.Members {
			section := ""
			for j := range o.Programs {
				if o.Programs[j].Fn == m.Funcs[i] {
					section = o.Programs[j].Section
				}
			}
			if want := map[bool]string{false: "struct_ops/" + member}[member == "name"]; section != want {
				t.Errorf("%s.%s: a program of section %q, want %q", m.Name, member, section, want)
			}
		}
	}
	if len(o.StructOps) != 7 {
		t.Errorf("%d struct_ops", len(o.StructOps))
	}
}
