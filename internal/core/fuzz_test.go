// SPDX-License-Identifier: Apache-2.0

package core

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/pkg/relo"
)

// FuzzObject reads objects that are not what they claim to be, and relocates
// what it gets out of them against their own types.
func FuzzObject(f *testing.F) {
	paths, _ := filepath.Glob("../../testdata/bpf/*.o")
	if len(paths) == 0 {
		f.Fatal("no objects in testdata/bpf")
	}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 32<<10 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := ParseObject("fuzz", data)
		if err != nil {
			if o != nil {
				t.Error("object and error")
			}
			return
		}
		if o.btf == nil {
			return
		}
		self := &Target{name: "self", views: []*moduleTypes{{BTF: *o.btf}}}
		var a, b Table
		for _, tb := range []*Table{&a, &b} {
			if err := new(Filler).Fill(t.Context(), tb, NewSet(o), self, nil); err != nil {
				t.Fatal(err)
			}
		}
		if d, err := Compare(t.Context(), &a, &b); d != nil || err != nil {
			t.Errorf("the kernel is not the same as itself: %v, %v", d, err)
		}
		n := 0
		for _, d := range a.Libbpf().Decisions(0) {
			n++
			if d.Result.OK() != (d.Reason() == relo.Reason{} || d.Result == relo.Absent) {
				t.Errorf("result %s, reason %v", d.Result, d.Reason())
			}
			switch r := d.Reason(); r.Code {
			case relo.InvalidRelocation, relo.LoadNotResizable, relo.UnpatchableInsn:
				if r.Cause == "" {
					t.Errorf("%s without a cause", r)
				}
			}
			for _, c := range d.resolution.candidates(t.Context(), &explainer{tb: &a}) {
				if c.Match == (c.Reason != nil) {
					t.Errorf("match %v, reason %v", c.Match, c.Reason)
				}
			}
		}
		if n != len(o.records) {
			t.Errorf("%d decisions for %d records", n, len(o.records))
		}
	})
}
