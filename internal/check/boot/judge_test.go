// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/loadtest"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// buildLoader returns $BTFGEN_LOADER or compiles testdata/load.c. It skips the test if it can do neither.
func buildLoader(t *testing.T) string {
	t.Helper()
	loadtest.Kernel(t)
	if bin := os.Getenv("BTFGEN_LOADER"); bin != "" {
		return bin
	}
	bin := filepath.Join(t.TempDir(), "load")
	if err := exec.Command("cc", "-E", "-include", "bpf/libbpf.h", "-x", "c", os.DevNull).Run(); err != nil {
		t.Skipf("needs a C compiler with libbpf: %v", err)
	}
	source, err := os.Open(filepath.Join("testdata", "load.c")) // go test then reuses no cached result
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	cc := exec.Command("cc", "-O1", "-Wall", "-o", bin, "-x", "c", "-", "-lbpf", "-lelf", "-lz")
	cc.Stdin = source
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("testdata/load.c: %v\n%s", err, out)
	}
	return bin
}

// TestRunningKernel loads every program of the available objects on the running kernel with libbpf, and compares the
// outcomes with the predictions.
func TestRunningKernel(t *testing.T) {
	loader := buildLoader(t)
	corp, err := corpus.Open(context.Background(), []string{"/sys/kernel/btf"}, corpus.Options{Extras: true})
	if err != nil {
		t.Fatal(err)
	}
	inputs := testinput.Objects(t)
	var objects []*rule.Object
	for _, in := range inputs {
		o, err := rule.Parse(t.Context(), in.Name(), in.Data)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	rep, err := check.Run(context.Background(), check.Config{Objects: objects, Corpus: corp, Jobs: 1, Loaders: []rule.Loader{rule.Libbpf}})
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	var table Table // counts programs that the user may load
	rest := rep.Programs
	for i, in := range inputs {
		programs := rest[:len(objects[i].Programs)]
		rest = rest[len(programs):]
		if programs[0].Status[0] == rule.Other {
			continue
		}
		path := filepath.Join(t.TempDir(), "object.o")
		if err := os.WriteFile(path, in.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		outcomes, err := load(loader, path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range outcomes {
			got := &outcomes[i]
			p := slices.IndexFunc(programs, func(p verdict.ProgramRow) bool { return p.Name == got.Program })
			if p < 0 {
				t.Errorf("%s: no verdict on %s: %s", in.Name(), got.Program, got.Log)
				continue
			}
			c := compare(&programs[p], 0, got)
			switch got.Errno {
			case 0:
				table.add(c.Program, step{predicted: c.Verdict, outcome: Loads})
			case int(syscall.EPERM):
			default:
				table.add(c.Program, step{predicted: c.Verdict, outcome: Fails, why: reason(got.Errno, got.Log)})
			}
			counts[fmt.Sprintf("predicted %s, %s", c.Predicted, c.Happened)]++
			if c.Wrong != "" {
				t.Error(c.Wrong)
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%4d %s", counts[k], k)
	}
	t.Log(table.Row(rep.Kernels[0].Name, "real libbpf loads"))
	for _, l := range table.Surprises {
		t.Log(l)
	}
	if counts["predicted fails, fails"] == 0 || counts["predicted ok, loads"] == 0 {
		t.Error("too few programs to tell anything")
	}
}

// TestCompare compares outcomes with predicted failures of relocations and of maps.
func TestCompare(t *testing.T) {
	const (
		core   = "relo #3: failed to relocate: -3"
		noMap  = "libbpf: map 'm': failed to create: Invalid argument(-22)"
		helper = "invalid func unknown#9999"
	)
	for _, tt := range []struct {
		codes []rule.Code // the expected failures
		errno int
		log   string
		wrong string
	}{
		{[]rule.Code{relo.NoCandidate}, 22, core, ""},
		{[]rule.Code{relo.NoCandidate}, 0, "", "was to fail, but loads"},
		{[]rule.Code{relo.NoCandidate}, 22, noMap, "was to fail, but fails for another reason"},
		{[]rule.Code{relo.NoCandidate, rule.MapTypeMissing}, 22, noMap, ""},
		{[]rule.Code{relo.NoCandidate, rule.MapTypeMissing}, 0, "", "was to fail, but loads"},
		{[]rule.Code{relo.NoCandidate}, 22, helper, "fails, but for another cause"},
		{[]rule.Code{rule.MapTypeMissing}, 0, "", "was to fail for another reason, but loads"},
		{[]rule.Code{rule.KconfigUnset}, 0, "", "was to fail for another reason, but loads"},
		{nil, 22, core, "was to load, but fails"},
		{nil, 22, noMap, ""},
	} {
		p := &verdict.ProgramRow{Object: "o", Name: "p", Load: []rule.Status{rule.OK}}
		for _, code := range tt.codes {
			p.Load[0] = rule.Fails
			p.Findings = append(p.Findings, verdict.KernelFinding{Finding: rule.Finding{Status: rule.Fails, Code: code}, Kernels: []int{0}})
		}
		c := compare(p, 0, &Outcome{Program: "p", Errno: tt.errno, Log: tt.log})
		if tt.wrong == "" && c.Wrong != "" || !strings.Contains(c.Wrong, "o: p "+tt.wrong) && tt.wrong != "" {
			t.Errorf("%v, errno %d, %q: %q, want %q", tt.codes, tt.errno, tt.log, c.Wrong, tt.wrong)
		}
	}
}

func TestParseOutcomes(t *testing.T) {
	for _, cut := range []string{"o\ta\t0\t\t", "o\ta\tx\t\t\n", "o\ta\t0\n"} {
		if got, err := parseOutcomes([]byte("o\tb\t0\t\t\n" + cut)); err == nil {
			t.Errorf("%q is taken: %v", cut, got)
		}
	}
	got, err := parseOutcomes([]byte("o\ta\t0\t\t\no\tb\t22\tx\\ny\t\no\tc\t1\tz\tinvalid func unknown#195896080\n"))
	if err != nil || len(got) != 3 || got[0].Log != "" || got[1].Errno != 22 || got[1].Log != "x\ny\n" {
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

// TestReason wants the line that says why a program was not loaded: the last one, or that before an explanation.
func TestReason(t *testing.T) {
	const refused = "6: (85) call bpf_for_each_map_elem#164\nR3 type=ctx expected=fp\n"
	for name, tt := range map[string]struct{ log, want string }{
		"the last line":     {refused + "processed 6 insns (limit 1000000)\n", "R3 type=ctx expected=fp"},
		"with libbpf's":     {refused + "libbpf: -- END PROG LOAD LOG --\n", "R3 type=ctx expected=fp"},
		"of Linux 7.3":      {refused + "Verification failed: Call Type Safety\nReason:\n  The third argument\nSuggestion:\n  Pass a value\n", "R3 type=ctx expected=fp"},
		"no log":            {"", "errno 22"},
		"a poisoned helper": {"invalid func unknown#195896080\nprocessed 1 insns\n", "reaches an unresolved relocation"},
	} {
		if got := reason(22, tt.log); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
