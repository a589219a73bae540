// SPDX-License-Identifier: Apache-2.0

package loadtest

import (
	"bytes"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// report checks an object on the running kernel.
func report(t *testing.T, o testinput.Object, cfg check.Config) *verdict.Report {
	t.Helper()
	obj, err := rule.Parse(t.Context(), o.Name(), o.Data)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Corpus, err = corpus.Open(t.Context(), []string{kernelBTF}, corpus.Options{}); err != nil {
		t.Fatal(err)
	}
	cfg.Objects, cfg.Jobs = []*rule.Object{obj}, 1
	rep, err := check.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// predicted returns the verdict of check for each program with a loader, by name.
func predicted(t *testing.T, o testinput.Object, l rule.Loader) map[string]rule.Status {
	t.Helper()
	got := make(map[string]rule.Status)
	for _, p := range report(t, o, check.Config{Loaders: []rule.Loader{l}}).Programs {
		got[p.Name] = p.Load[0]
	}
	return got
}

// TestLoadersDiffer loads an object with a map and a kfunc that no kernel accepts,
// program by program. The whole object fails in libbpf, and one program in cilium/ebpf.
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
		for name, want := range predicted(t, o, rule.EbpfGo) {
			if name == "uses_map" { // every kernel refuses the map, so check does not judge it
				continue
			}
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
		write(t, path, o.Data)
		want := predicted(t, o, rule.Libbpf)
		list := run(t, o.Order(), loader, kernelBTF, path)
		if len(list) != len(want) {
			t.Errorf("%d programs, want %d", len(list), len(want))
		}
		for _, p := range list {
			compareLoad(t, p.name, want[p.name], p.failure == "")
		}
	})
}

// TestWholeObjects loads whole objects with libbpf on the running kernel, and compares
// the results with their rows that predict loading without guesses.
func TestWholeObjects(t *testing.T) {
	slow.Nightly(t)
	Kernel(t)
	loader := build(t)
	dir := t.TempDir()
	counts := make(map[string]int)
	for i, o := range testinput.Objects(t) {
		if name := o.Name(); strings.HasPrefix(name, "license.") || strings.HasPrefix(name, "perfvalue.") {
			continue // every kernel refuses what check does not judge: a helper without the license, and the size of a map's values
		}
		rep := report(t, o, check.Config{Loaders: []rule.Loader{rule.Libbpf}, Policy: verdict.Policy{Exact: true}})
		row := &rep.Objects[0]
		if row.Load[0] == rule.Other {
			continue
		}
		path := filepath.Join(dir, fmt.Sprint(i))
		write(t, path, o.Data)
		out, err := exec.CommandContext(t.Context(), loader, "--whole", path).Output()
		if err != nil {
			t.Fatalf("%s: %v", o.Name(), err)
		}
		happened := "does not load"
		switch errno, _, _ := strings.Cut(string(out), " "); errno {
		case "0":
			happened = "loads"
		case "-1": // EPERM: this process may not load programs of a type
			counts["not allowed here"]++
			continue
		}
		counts["predicted "+row.Load[0].String()+", "+happened]++
		if works := row.Load[0] <= rule.Guarded; (works || row.Load[0] == rule.Fails) && works != (happened == "loads") {
			t.Errorf("%s: predicted %s, %s: %s%s", o.Name(), row.Load[0], happened, out, fmt.Sprintf("%+v", row.Cells))
		}
	}
	for _, c := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%4d %s", counts[c], c)
	}
	if counts["predicted ok, loads"] == 0 || counts["predicted fails, does not load"] == 0 {
		t.Error("too few objects to tell anything")
	}
}

func compareLoad(t *testing.T, program string, predicted rule.Status, loads bool) {
	t.Helper()
	if loads != (predicted == rule.OK) {
		t.Errorf("%s: predicted %s, loads: %t", program, predicted, loads)
	} else {
		t.Logf("%s: predicted %s, loads: %t", program, predicted, loads)
	}
}
