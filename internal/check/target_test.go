// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testinput"
)

// TestTarget attaches a program to what no kernel has, to what some have, and to
// what all have.
func TestTarget(t *testing.T) {
	data := testinput.Named(t, "lsmhooks.bpfel.o").Data
	o, err := Parse(t.Context(), "o", data)
	if err != nil {
		t.Fatal(err)
	}
	corp, err := corpus.Open(t.Context(), []string{testinput.Path(t, "testdata", "vmlinux")}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	verdicts := func(o *Object) map[Status]int {
		rep, err := Run(t.Context(), Config{Objects: []*Object{o}, Corpus: corp, Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		counts := make(map[Status]int)
		p, _ := find(t, rep, "no_such_hook", rep.Kernels[0].Name)
		for k := range rep.Kernels {
			s := OK
			for _, f := range findingsOn(p, k, TopicTarget) {
				s = max(s, f.Status)
				if told := strings.Contains(f.Reason, "--target"); told != (f.Status == Unknown) {
					t.Errorf("%v", f)
				}
			}
			counts[s]++
		}
		return counts
	}
	if got := verdicts(o); got[Fails] != 0 || got[Unknown] == 0 {
		t.Errorf("a hook that no kernel has: %v", got)
	}
	for hook, want := range map[string]Status{"userns_create": Fails, "file_open": OK} {
		to, ok := o.WithTarget("no_such_hook", hook)
		if got := verdicts(to); !ok || got[want] == 0 || got[Unknown] != 0 {
			t.Errorf("%s: %v", hook, got)
		}
	}
	if _, ok := o.WithTarget("no_such_program", "file_open"); ok {
		t.Error("a program that is not there was attached")
	}
}
