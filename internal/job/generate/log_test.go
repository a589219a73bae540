// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestUnresolvedIsTheLog compares Unresolved with the relocation logs of the same objects and kernels. generate reads the
// kernels in parts, from a .btfc file.
func TestUnresolvedIsTheLog(t *testing.T) {
	slow.Nightly(t)
	tree := testinput.Few(t)
	cfg := generate.Config{Corpus: testinput.Packed(t, tree), Jobs: 2}
	for _, o := range testinput.Objects(t) {
		cfg.Objects = append(cfg.Objects, o.Object)
	}
	report, err := generate.Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]bool)
	for _, u := range report.Unresolved {
		for _, k := range u.Kernels {
			listed[strings.Join([]string{k, u.Object, u.Relo, u.Result.String()}, " ")] = true
		}
	}
	logged := make(map[string]bool)
	testinput.Each(t, tree, func(it *corpus.Kernel) {
		target, err := testinput.NewKernel(it.Name, it.BTF, it.Modules...)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range cfg.Objects {
			if o.Order() != target.Order() {
				continue
			}
			log, err := core.NewSet(o).Run(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			for i := range log.Entries {
				e := &log.Entries[i]
				if e.Result != relo.Resolved && e.Result != relo.Absent {
					logged[strings.Join([]string{target.Name(), o.Name(), e.Relocation(), e.Result.String()}, " ")] = true
				}
			}
		}
	})
	missing := func(what string, from, in map[string]bool) {
		var l []string
		for s := range from {
			if !in[s] {
				l = append(l, s)
			}
		}
		slices.Sort(l)
		if len(l) > 0 {
			t.Errorf("%d are %s, the first %s", len(l), what, l[0])
		}
	}
	missing("in the log only", logged, listed)
	missing("listed only", listed, logged)
	t.Logf("%d unresolved relocations compared", len(logged))
	if len(logged) == 0 {
		t.Error("every relocation is resolved, the test compares nothing")
	}
}
