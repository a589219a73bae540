// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"os"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/check"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestCertain reads the causes of all objects on all kernels, those of testdata and of BTFGEN_OBJECTS. It wants one verdict on each thing of an
// object on a kernel.
func TestCertain(t *testing.T) {
	dirs := []string{testinput.Path(t, "testdata", "bpf")}
	if dir := os.Getenv("BTFGEN_OBJECTS"); dir != "" {
		dirs = append(dirs, dir)
	}
	files, err := embedded.Files(t.Context(), dirs)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*rule.Object
	for _, f := range files {
		found, err := embedded.ReadFile(f.Path)
		if err != nil {
			continue
		}
		for _, x := range found {
			if o, err := rule.Parse(t.Context(), x.Name, x.Data); err == nil {
				objects = append(objects, o)
			}
		}
	}
	rep, err := check.Run(t.Context(), check.Config{Objects: objects, Corpus: testinput.Corpus(t), Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	type thing struct {
		code    rule.Code
		subject string
		object  int
		kernel  int
	}
	verdicts := make(map[thing]rule.Status)
	all := rep.All()
	for _, c := range all {
		if c.Status < rule.Unknown || c.Loader != "" {
			continue
		}
		for _, s := range c.Subjects {
			for _, o := range c.Objects {
				for _, k := range c.Kernels {
					x := thing{c.Code, s.Subject + s.Name, o, k}
					if has := slices.ContainsFunc(s.Programs, func(p int) bool { return slices.Contains(rep.Objects[o].Programs, p) }); !has {
						continue
					}
					if old, ok := verdicts[x]; ok && old != c.Status {
						t.Errorf("%+v: %s and %s", x, old, c.Status)
					}
					verdicts[x] = c.Status
				}
			}
		}
	}
	if len(verdicts) < 100 {
		t.Errorf("%d verdicts", len(verdicts))
	}
	t.Logf("%d objects, %d kernels, %d causes", len(objects), len(rep.Kernels), len(verdicts))
}
