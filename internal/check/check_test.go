// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

func TestMain(m *testing.M) { testinput.Main(m) }

// runOn checks objects of testdata/bpf, without their suffix .o, on
// testdata/vmlinux.
func runOn(t *testing.T, names ...string) *verdict.Report {
	t.Helper()
	if raceflag.Enabled {
		t.Skip("skipped with the race detector: TestIndependent has more objects, and more workers")
	}
	return runWith(t, Config{}, names...)
}

// runWith is runOn with what else cfg says.
func runWith(t *testing.T, cfg Config, names ...string) *verdict.Report {
	t.Helper()
	for _, n := range names {
		data, err := os.ReadFile(testinput.Path(t, "testdata", "bpf", n+".o"))
		if err != nil {
			t.Fatal(err)
		}
		o, err := rule.Parse(t.Context(), n, data)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Objects = append(cfg.Objects, o)
	}
	corp, err := corpus.Open(context.Background(), []string{testinput.Vmlinux(t)}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Corpus, cfg.Jobs = corp, 2
	rep, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// expectation is testdata/bpf/expect.json.
type expectation struct {
	Kernels []string
	Objects map[string]map[string]struct {
		OK, Guarded, Fails []int
		Poisoned           map[string][]int
		Helper             int
	}
}

// TestExpected compares verdicts with a list made by hand of every program with a guard or a mistake.
func TestExpected(t *testing.T) {
	data, err := os.ReadFile(testinput.Path(t, "testdata", "bpf", "expect.json"))
	if err != nil {
		t.Fatal(err)
	}
	var exp expectation
	if err := json.Unmarshal(data, &exp); err != nil {
		t.Fatal(err)
	}
	for object, programs := range exp.Objects {
		libbpf := Config{Loaders: []rule.Loader{rule.Libbpf}} // sizes with ebpf-go: see TestAbsentSizes
		el, eb := runWith(t, libbpf, object+".bpfel"), runWith(t, libbpf, object+".bpfeb")
		for name, want := range programs {
			for i, kernel := range exp.Kernels {
				rep := el
				if strings.Contains(kernel, "s390x") {
					rep = eb
				}
				p, k := find(t, rep, name, kernel)
				got := statusOf(p, k, rule.FamilyCORE, rule.FamilyHelper)
				status := rule.OK
				if slices.Contains(want.Guarded, i) {
					status = rule.Guarded
				} else if slices.Contains(want.Fails, i) {
					status = rule.Fails
				} else if !slices.Contains(want.OK, i) {
					t.Errorf("%s: %s: nothing is expected of %s", object, name, kernel)
				}
				if name == "kconfig" {
					status = rule.MayFail // BTF does not show the configuration
				}
				if got != status {
					t.Errorf("%s: %s on %s: %s, want %s", object, name, kernel, got, status)
					for _, f := range p.Findings {
						if slices.Contains(f.Kernels, k) {
							t.Logf("\t%v", f.Finding)
						}
					}
				}
			}
		}
	}
}

// TestDeterministic wants the same report at any number of workers.
func TestDeterministic(t *testing.T) {
	slow.Skip(t)
	var last []byte
	for _, jobs := range []int{1, 2, 7} {
		var objs []*rule.Object
		for _, n := range []string{"guards.bpfel", "broken.bpfeb", "kfuncs.bpfel", "filelife.bpfel"} {
			o, err := rule.Parse(t.Context(), n, testinput.Named(t, n+".o").Data)
			if err != nil {
				t.Fatal(err)
			}
			objs = append(objs, o)
		}
		corp, err := corpus.Open(context.Background(), []string{testinput.Vmlinux(t)}, corpus.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rep, err := Run(context.Background(), Config{Objects: objs, Corpus: corp, Jobs: jobs})
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(rep)
		if err != nil {
			t.Fatal(err)
		}
		if last != nil && !bytes.Equal(got, last) {
			t.Errorf("%d workers make another report", jobs)
		}
		last = got
	}
}

func find(t *testing.T, rep *verdict.Report, program, kernel string) (*verdict.ProgramRow, int) {
	t.Helper()
	k := slices.IndexFunc(rep.Kernels, func(k verdict.Column) bool { return k.Name == kernel })
	i := slices.IndexFunc(rep.Programs, func(p verdict.ProgramRow) bool { return p.Name == program })
	if k < 0 || i < 0 {
		t.Fatalf("no program %s or no kernel %s", program, kernel)
	}
	return &rep.Programs[i], k
}

// statusOf is the worst of a program's findings on some families on a kernel.
func statusOf(p *verdict.ProgramRow, kernel int, families ...rule.Family) rule.Status {
	s := rule.OK
	for _, f := range p.Findings {
		if slices.Contains(f.Kernels, kernel) && slices.Contains(families, rule.FamilyOf(f.Code)) {
			s = max(s, f.Status)
		}
	}
	return s
}
