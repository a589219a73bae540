// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"
	"testing"
)

// TestExecutables sums up the objects of executables: each is needed, except those for other machines.
func TestExecutables(t *testing.T) {
	r := &Report{}
	for _, name := range []string{"debian/11/x86_64/5.10.0-1", "debian/12/x86_64/6.1.0-1", "debian/13/x86_64/6.12.1-1", "debian/13/arm64/6.12.1-1"} {
		r.Kernels = append(r.Kernels, Kernel{Name: name})
	}
	add := func(object, lacks string, status ...Status) {
		n := len(r.Programs)
		row := ObjectRow{Object: object, Programs: []int{n}, Status: status, Load: status}
		p := Program{Object: object, Name: "p", Status: status}
		for k, s := range status {
			if s == Fails {
				p.Findings = append(p.Findings, KernelFinding{Finding: Finding{Status: Fails, Code: HelperMissing, Subject: lacks}, Kernels: []int{k}})
				row.Decides = append(row.Decides, Decider{n, []int{k}})
			}
		}
		r.Programs, r.Objects = append(r.Programs, p), append(r.Objects, row)
	}
	add("tool!a", "old", Fails, OK, OK, Other)
	add("alone!#1", "x", OK, OK, OK, Other)
	add("tool!b", "new", OK, Guarded, Fails, Other)
	add("tool!big", "", Other, Other, Other, Other)
	add("dir!x/plain.o", "", OK, OK, OK, OK)
	add("dir!x/plain2.o", "", OK, OK, OK, OK)
	r.Executables = r.executables()
	if len(r.Executables) != 1 {
		t.Fatalf("%d executables", len(r.Executables))
	}
	x := &r.Executables[0]
	r.Summarize(x)
	if want := []Status{Fails, Guarded, Fails, Other}; x.Object != "tool" || !slices.Equal(x.Status, want) || !slices.Equal(x.Load, want) {
		t.Errorf("%s: %v, %v; want %v", x.Object, x.Status, x.Load, want)
	}
	if want := []int{0, 2, 3}; !slices.Equal(x.Programs, want) {
		t.Errorf("programs %v, want %v", x.Programs, want)
	}
	var lacks []string
	for _, l := range x.Headline.Lacks {
		lacks = append(lacks, l.Subject)
	}
	if h := x.Headline; h.Works != 1 || h.Total != 3 || h.Since != "6.1" || !slices.Equal(lacks, []string{"old"}) || len(h.Exceptions) != 1 {
		t.Errorf("%+v", h)
	}
	var names []string
	for _, row := range r.Whole() {
		names = append(names, row.Object)
	}
	if got := strings.Join(names, " "); got != "tool alone!#1 dir!x/plain.o dir!x/plain2.o" {
		t.Errorf("whole: %s", got)
	}
}
