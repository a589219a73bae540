// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/loadtest"
	"github.com/btfgen/btfgen/internal/testinput"
)

// buildLoader compiles testdata/load.c, unless BTFGEN_LOADER names it compiled, as where there is no compiler, or skips the test.
func buildLoader(t *testing.T) string {
	t.Helper()
	loadtest.Kernel(t)
	if bin := os.Getenv("BTFGEN_LOADER"); bin != "" {
		return bin
	}
	bin := filepath.Join(t.TempDir(), "load")
	cc := exec.Command("cc", "-O1", "-Wall", "-o", bin, filepath.Join("testdata", "load.c"), "-lbpf", "-lelf", "-lz")
	if out, err := cc.CombinedOutput(); err != nil {
		t.Skipf("needs a C compiler with libbpf: %v\n%s", err, out)
	}
	return bin
}

// TestRunningKernel loads every program of the objects at hand on the running
// kernel with libbpf, and compares with what is predicted.
func TestRunningKernel(t *testing.T) {
	loader := buildLoader(t)
	corp, err := corpus.Open(context.Background(), []string{"/sys/kernel/btf"}, corpus.Options{Extras: true})
	if err != nil {
		t.Fatal(err)
	}
	inputs := testinput.Objects(t)
	var objects []*check.Object
	for _, in := range inputs {
		o, err := check.Parse(t.Context(), in.Name(), in.Data)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	rep, err := check.Run(context.Background(), check.Config{Objects: objects, Corpus: corp, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	var table Table
	rest := rep.Programs
	for i, in := range inputs {
		programs := rest[:len(objects[i].Programs)]
		rest = rest[len(programs):]
		if programs[0].Status[0] == check.Other {
			continue
		}
		path := filepath.Join(t.TempDir(), "object.o")
		if err := os.WriteFile(path, in.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		outcomes, err := Load(loader, path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range outcomes {
			got := &outcomes[i]
			p := slices.IndexFunc(programs, func(p check.Program) bool { return p.Name == got.Program })
			if p < 0 {
				t.Errorf("%s: no verdict on %s: %s", in.Name(), got.Program, got.Log)
				continue
			}
			c := Compare(&programs[p], 0, got)
			table.Add(&c, got)
			counts[fmt.Sprintf("predicted %s, %s", c.Predicted, c.Happened)]++
			if c.Wrong != "" {
				t.Error(c.Wrong)
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%4d %s", counts[k], k)
	}
	for _, l := range table.Lines() {
		t.Log(l)
	}
	if counts["predicted fails, fails"] == 0 || counts["predicted ok, loads"] == 0 {
		t.Error("too few programs to tell anything")
	}
}

func TestParse(t *testing.T) {
	got, err := parse([]byte("a 0 3\nx\nyb 22 0\nc 1 29\ninvalid func unknown#195896080"))
	if err == nil {
		t.Errorf("a log that is cut short is taken: %v", got)
	}
	got, err = parse([]byte("a 0 3\nx\nyb 22 0\nc 1 30\ninvalid func unknown#195896080"))
	if err != nil || len(got) != 3 || got[0].Log != "x\ny" || got[1].Errno != 22 {
		t.Fatalf("%v, %v", got, err)
	}
	if core, helper := got[2].causes(); !core || helper {
		t.Error("a poisoned instruction is not seen")
	}
	for log, want := range map[string][2]bool{
		"invalid func unknown#9999":                           {false, true},
		"unknown func bpf_loop#181":                           {false, true},
		"program of this type cannot use helper bpf_loop#181": {false, true},
		"invalid func unknown#2002000000":                     {false, false},
		"relo #3: failed to relocate: -3":                     {true, false},
		"R1 invalid mem access 'scalar'":                      {false, false},
	} {
		o := Outcome{Log: log}
		if core, helper := o.causes(); core != want[0] || helper != want[1] {
			t.Errorf("%q: %t %t", log, core, helper)
		}
	}
}
