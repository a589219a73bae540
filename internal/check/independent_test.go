// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestIndependent wants the same findings on a kernel alone, judged by several workers, as on the kernel among others. Findings about all
// kernels are left out: on names that no kernel has, and on differences between kernels.
func TestIndependent(t *testing.T) {
	const large = 300_000 // bytes; larger objects take too long
	corp := testinput.Varied(t)
	var objects []*rule.Object
	for _, in := range testinput.Objects(t) {
		if len(in.Data) > large {
			continue
		}
		o, err := rule.Parse(t.Context(), in.Name(), in.Data)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	findings := func(files []*corpus.File, jobs int) map[string][]string {
		c := *corp
		c.Files = files
		rep, err := Run(t.Context(), Config{Objects: objects, Corpus: &c, Jobs: jobs})
		if err != nil {
			t.Fatal(err)
		}
		all := make(map[string][]string)
		for i := range rep.Programs {
			p := &rep.Programs[i]
			for _, f := range p.Findings {
				if f.Where != "" { // the finding compares with another kernel
					continue
				}
				for lacks, supplied := range fromLoader {
					if f.Code == supplied {
						f.Status, f.Code = rule.Fails, lacks
					}
				}
				if slices.Contains(inModules, f.Code) { // another kernel names it
					f.Names = ""
				}
				if f.Code == relo.NoCandidate && f.Status == rule.Fails { // arguments about one loader, which TypesSupplied lacks
					f.Args = rule.Args{}
				}
				for _, k := range f.Kernels {
					key := rep.Kernels[k].Name + " " + p.Object + " " + p.Name
					all[key] = append(all[key], fmt.Sprintf("%+v", f.Finding))
				}
			}
		}
		for key := range all {
			slices.Sort(all[key])
		}
		return all
	}
	together := findings(corp.Files, 2)
	n := 0
	for _, f := range corp.Files {
		for key, got := range findings([]*corpus.File{f}, 2) {
			n++
			if want := together[key]; !slices.Equal(got, want) {
				t.Errorf("%s:\nalone %q\namong others %q", key, got, want)
			}
			delete(together, key)
		}
	}
	for key, got := range together {
		t.Errorf("%s: nothing alone, among others %q", key, got)
	}
	if n < 100 {
		t.Errorf("only %d programs have findings", n)
	}
}
