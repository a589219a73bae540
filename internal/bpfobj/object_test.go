// SPDX-License-Identifier: Apache-2.0

package bpfobj_test

import (
	"os"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
)

// subprograms returns an object of testdata with functions in two sections.
func subprograms(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("../../testdata/bpf/subprogs.bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestRecords places records, two at the same instruction, and some without an instruction.
func TestRecords(t *testing.T) {
	data := subprograms(t)
	f, err := bpfobj.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	o, err := f.Parse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fn := slices.IndexFunc(o.Funcs, func(f bpfobj.Function) bool { return f.Start > 0 })
	want := bpfobj.Site{Fn: fn, Insn: 1}
	record := func(off uint32) bpfobj.Record { return bpfobj.Record{CoreRecord: btf.CoreRecord{Off: off}} }
	at := record(uint32(8 * (o.Funcs[fn].Start + 1)))
	if f, err = bpfobj.Open(data); err != nil {
		t.Fatal(err)
	}
	f.Ext.Sections = []*bpfobj.ExtSection{
		{Name: o.Funcs[fn].Section, Records: []bpfobj.Record{at, at, record(8 << 20)}},
		{Name: "nowhere", Records: []bpfobj.Record{record(8)}},
	}
	if o, err = f.Parse(t.Context()); err != nil {
		t.Fatal(err)
	}
	nowhere := bpfobj.Site{Fn: -1}
	if !slices.Equal(o.Sites, []bpfobj.Site{want, want, nowhere, nowhere}) {
		t.Errorf("%+v, want two at %+v", o.Sites, want)
	}
}

// TestCutShort opens beginnings of an object, which lack the section headers at its end.
func TestCutShort(t *testing.T) {
	data := subprograms(t)
	for n := 0; n < len(data); n += 7 {
		if _, err := bpfobj.Open(data[:n]); err == nil {
			t.Errorf("%d of %d bytes are an object", n, len(data))
		}
	}
}
