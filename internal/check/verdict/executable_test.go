// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestExecutables sums up the objects of executables: each is needed, except those for other machines.
func TestExecutables(t *testing.T) {
	r := &Report{}
	for _, name := range []string{"debian/11/x86_64/5.10.0-1", "debian/12/x86_64/6.1.0-1", "debian/13/x86_64/6.12.1-1", "debian/13/arm64/6.12.1-1"} {
		r.Kernels = append(r.Kernels, Column{Name: name})
	}
	add := func(object, lacks string, status ...rule.Status) {
		n := len(r.Programs)
		row := ObjectRow{Object: object, Programs: []int{n}, Status: status, Load: status}
		p := ProgramRow{Object: object, Name: "p", Status: status}
		for k, s := range status {
			if s == rule.Fails {
				p.Findings = append(p.Findings, KernelFinding{Finding: rule.Finding{Status: rule.Fails, Code: rule.HelperMissing, Subject: lacks}, Kernels: []int{k}})
				row.Decides = append(row.Decides, Decider{n, []int{k}})
			}
		}
		r.Programs, r.Objects = append(r.Programs, p), append(r.Objects, row)
	}
	add("tool!a", "old", rule.Fails, rule.OK, rule.OK, rule.Other)
	add("alone!#1", "x", rule.OK, rule.OK, rule.OK, rule.Other)
	add("tool!b", "new", rule.OK, rule.Guarded, rule.Fails, rule.Other)
	add("tool!big", "", rule.Other, rule.Other, rule.Other, rule.Other)
	add("dir!x/plain.o", "", rule.OK, rule.OK, rule.OK, rule.OK)
	add("dir!x/plain2.o", "", rule.OK, rule.OK, rule.OK, rule.OK)
	r.Executables = r.executables()
	if len(r.Executables) != 1 {
		t.Fatalf("%d executables", len(r.Executables))
	}
	x := &r.Executables[0]
	r.Summarize()
	if want := []rule.Status{rule.Fails, rule.Guarded, rule.Fails, rule.Other}; x.Object != "tool" || !slices.Equal(x.Status, want) || !slices.Equal(x.Load, want) {
		t.Errorf("%s: %v, %v; want %v", x.Object, x.Status, x.Load, want)
	}
	if want := []int{0, 2, 3}; !slices.Equal(x.Programs, want) {
		t.Errorf("programs %v, want %v", x.Programs, want)
	}
	if c := x.Sum(); c != (Cell{Works: 1, Fails: 2}) {
		t.Errorf("%+v", c)
	}
	if len(x.Minima) != 1 || x.Minima[0].Since != "6.1" || x.Minima[0].Until != "6.1" {
		t.Errorf("%+v", x.Minima)
	}
	if l := r.arrival(x, []int{0}); l != never { // no known release has a helper of this name
		t.Errorf("%s", l)
	}
	var names []string
	for _, row := range r.Whole() {
		names = append(names, row.Object)
	}
	if got := strings.Join(names, " "); got != "tool alone!#1 dir!x/plain.o dir!x/plain2.o" {
		t.Errorf("whole: %s", got)
	}
}
