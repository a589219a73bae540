// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// parse parses an object.
func parse(t *testing.T, in testinput.Object) *bpfobj.Code {
	t.Helper()
	f, err := bpfobj.Open(in.Data)
	if err != nil {
		t.Fatal(in.Name(), err)
	}
	o, err := f.Parse(t.Context())
	if err != nil {
		t.Fatal(in.Name(), err)
	}
	return o
}

// TestObjects compares programs with those of cilium/ebpf, and checks references and records.
func TestObjects(t *testing.T) {
	compared := 0
	for _, in := range testinput.Objects(t) {
		o := parse(t, in)
		consistent(t, in.Name(), o)
		spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(in.Data))
		if err != nil {
			continue
		}
		for name, want := range spec.Programs {
			i := slices.IndexFunc(o.Programs, func(p bpfobj.Program) bool { return o.Funcs[p.Fn].Name == name })
			if i < 0 {
				t.Errorf("%s: no program %s", in.Name(), name)
				continue
			}
			pr := &o.Programs[i]
			if got := strings.TrimPrefix(want.SectionName, "?"); pr.Section != got {
				t.Errorf("%s: %s: section %s, want %s", in.Name(), name, pr.Section, got)
			}
			if want.Type != ebpf.UnspecifiedProgram {
				if got := strings.ReplaceAll(pr.Attach.ProgType, "_", ""); !strings.EqualFold(got, want.Type.String()) {
					t.Errorf("%s: %s: type %s, want %s", in.Name(), name, got, want.Type)
				}
			}
			compared++
		}
	}
	if compared == 0 {
		t.Error("cilium/ebpf reads no program")
	}
}

// consistent checks every index in an object.
func consistent(t *testing.T, name string, o *bpfobj.Code) {
	t.Helper()
	for i, at := range o.Sites {
		if at.Fn < 0 || int(o.Funcs[at.Fn].Insns[at.Insn].Record) != i+1 {
			t.Errorf("%s: record %d is not at %+v", name, i, at)
		}
	}
	for i := range o.Programs {
		pr := &o.Programs[i]
		if pr.Funcs[0] != pr.Fn {
			t.Errorf("%s: program %d does not begin with its function", name, i)
		}
		for r, at := range o.Sites {
			if slices.Contains(pr.Funcs, at.Fn) != slices.Contains(pr.Records, r) {
				t.Errorf("%s: program %d: record %d is at %+v", name, i, r, at)
			}
		}
		for _, fn := range pr.Funcs {
			for k := range o.Funcs[fn].Insns {
				in := &o.Funcs[fn].Insns[k]
				if in.Ref.Kind() == bpfobj.RefFunc && !slices.Contains(pr.Funcs, in.Ref.N()) {
					t.Errorf("%s: %s calls function %d, which is not of the program", name, o.Funcs[fn].Name, in.Ref.N())
				}
				if in.Ref.Kind() == bpfobj.RefExtern && o.Externs[in.Ref.N()].Kind == bpfobj.ExternUndeclared {
					t.Errorf("%s: %s refers to %s, which nothing declares", name, o.Funcs[fn].Name, o.Externs[in.Ref.N()].Name)
				}
			}
		}
	}
}

// TestSource compares the lines of instructions with those of their records.
func TestSource(t *testing.T) {
	n := 0
	for _, in := range testinput.Objects(t) {
		o := parse(t, in)
		for i, r := range in.Object.Records() {
			want := in.Object.Source(&r)
			if want == "" {
				continue
			}
			n++
			if got := o.Source(o.Sites[i]); got != want {
				t.Errorf("%s: record %d: %s, want %s", in.Name(), i, got, want)
			}
		}
	}
	if n == 0 {
		t.Error("no object has lines")
	}
}
