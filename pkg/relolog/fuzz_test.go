package relolog_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/pkg/relolog"
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
		o, err := relolog.ParseObject("fuzz", data)
		if err != nil {
			if o != nil {
				t.Error("object and error")
			}
			return
		}
		self, err := relolog.SelfTarget(o)
		if err != nil {
			return
		}
		l, err := relolog.Run(o, self)
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Entries) != len(o.Relos()) {
			t.Errorf("%d entries for %d relocations", len(l.Entries), len(o.Relos()))
		}
		for _, e := range l.Entries {
			if (e.New != nil) != (e.Result == relolog.Resolved || e.Result == relolog.Absent) {
				t.Errorf("result %s with new %v", e.Result, e.New)
			}
		}
	})
}

// FuzzExt feeds .BTF.ext sections to the reader, with the types of a real
// object.
func FuzzExt(f *testing.F) {
	data, err := os.ReadFile("../../testdata/bpf/kinds.bpfel.o")
	if err != nil {
		f.Fatal(err)
	}
	parse, ext, err := relolog.ExtParser(data)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ext)
	f.Fuzz(func(t *testing.T, ext []byte) { parse(ext) })
}
