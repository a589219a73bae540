// SPDX-License-Identifier: Apache-2.0

package loadtest

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testinput"
)

// predicted returns what check says of loading each program with a loader, by name.
func predicted(t *testing.T, o testinput.Object, l check.Loader) map[string]check.Status {
	t.Helper()
	obj, err := check.Parse(t.Context(), o.Name(), o.Data)
	if err != nil {
		t.Fatal(err)
	}
	corp, err := corpus.Open(t.Context(), []string{kernelBTF}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := check.Run(t.Context(), check.Config{Objects: []*check.Object{obj}, Corpus: corp, Jobs: 1, Loaders: []check.Loader{l}})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]check.Status)
	for i := range rep.Programs {
		got[rep.Programs[i].Name] = rep.Programs[i].Load[0]
	}
	return got
}

// TestLoadersDiffer loads an object with a map and a kfunc that no kernel takes, program by program, with both
// loaders: what is one object's in libbpf is one program's in cilium/ebpf.
func TestLoadersDiffer(t *testing.T) {
	Kernel(t)
	if err := loadable(); err != nil {
		t.Skipf("needs a kernel that loads programs for this process: %v", err)
	}
	o := testinput.Named(t, "needy.bpfel.o")
	t.Run("ebpf-go", func(t *testing.T) {
		spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(o.Data))
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range predicted(t, o, check.EbpfGo) {
			to := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "P", Type: reflect.TypeFor[*ebpf.Program](), Tag: reflect.StructTag(`ebpf:"` + name + `"`)}}))
			err := spec.LoadAndAssign(to.Interface(), nil)
			if err == nil {
				to.Elem().Field(0).Interface().(*ebpf.Program).Close()
			}
			compareLoad(t, name, want, err == nil)
		}
		if _, err := ebpf.NewCollection(spec); err == nil {
			t.Error("NewCollection makes the map")
		}
	})
	t.Run("libbpf", func(t *testing.T) {
		loader := build(t)
		path := filepath.Join(t.TempDir(), "needy.o")
		if err := os.WriteFile(path, o.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		want := predicted(t, o, check.Libbpf)
		list := run(t, o.Order(), loader, kernelBTF, path)
		if len(list) != len(want) {
			t.Errorf("%d programs, want %d", len(list), len(want))
		}
		for _, p := range list {
			compareLoad(t, p.name, want[p.name], p.failure == "")
		}
	})
}

func compareLoad(t *testing.T, program string, predicted check.Status, loads bool) {
	t.Helper()
	if loads != (predicted == check.OK) {
		t.Errorf("%s: predicted %s, loads: %t", program, predicted, loads)
	} else {
		t.Logf("%s: predicted %s, loads: %t", program, predicted, loads)
	}
}
