// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/pkg/kernel"
)

func TestText(t *testing.T) {
	rep := &Report{Kernels: 20}
	add := func(c *Code, kernel, path, detail string) {
		rep.Findings = append(rep.Findings, Finding{c, kernel, path, detail})
	}
	for i := range 7 {
		add(Damaged, fmt.Sprintf("d/%d", i), fmt.Sprintf("d%d.btf", i), fmt.Sprintf("cause %d", i))
	}
	for i := range 5 {
		add(NoModules, fmt.Sprintf("n/%d", i), "n.btf", "")
	}
	add(NoFunctions, "f", "f", "")
	text := func(verbose bool) string {
		var b bytes.Buffer
		if err := rep.Text(&b, verbose); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	want := "error: damaged (7): " + Damaged.Text + `
  d/0: cause 0 (d0.btf)
  d/1: cause 1 (d1.btf)
  d/2: cause 2 (d2.btf)
  d/3: cause 3 (d3.btf)
  d/4: cause 4 (d4.btf)
  and 2 more (-v lists all)
warning: no-modules (5): ` + NoModules.Text + `
  n/0, n/1, n/2 and 2 more
warning: no-functions (1): ` + NoFunctions.Text + `
  f
`
	if d := cmp.Diff(want, text(false)); d != "" {
		t.Error(d)
	}
	long := text(true)
	for _, f := range rep.Findings {
		if !strings.Contains(long, "  "+f.Kernel) || !strings.Contains(long, f.Path) {
			t.Errorf("-v lacks %v:\n%s", f, long)
		}
	}
	if got := (&Report{Kernels: 1, Errors: 1, Notes: 2}).Summary(); got != "1 kernel: 1 error, 0 warnings, 2 notes" {
		t.Error(got)
	}
}

func TestCodes(t *testing.T) {
	last := Error
	for _, c := range Codes {
		if c.Name == "" || c.Text == "" {
			t.Errorf("code %q: %q", c, c.Text)
		}
		if c.Severity < last {
			t.Errorf("%s is out of order", c)
		}
		last = c.Severity
	}
}

func TestUnknownName(t *testing.T) {
	e := newEntry(kernel.Key{Release: "6.1"}, "c.btf", 1, nil)
	if e.Kernel != "c.btf" {
		t.Errorf("name of an unknown kernel: %s", e.Kernel)
	}
}

func TestBelow(t *testing.T) {
	for _, tt := range []struct {
		path, want string
		sources    []string
	}{
		{"k/a/b.btf", "a/b.btf", []string{"k"}},
		{"k/a/b.btf", "a/b.btf", []string{"./k/"}},
		{"a/b.btf", "a/b.btf", []string{"."}},
		{"/k/a/b.btf", "b.btf", []string{"/k", "/k/a"}},
		{"/kk/a.btf", "a.btf", []string{"/k", "/kk"}},
		{"/k/x.deb!boot/vmlinux!.BTF", "x.deb!boot/vmlinux!.BTF", []string{"/k"}},
		{"x.deb!boot/vmlinux", "x.deb!boot/vmlinux", []string{"x.deb"}},
		{"../k/x.btf", "x.btf", []string{"../k/x.btf"}},
		{"/k/x.btf", "/k/x.btf", []string{"k"}},
	} {
		if got := below(tt.sources, tt.path); got != tt.want {
			t.Errorf("%s below %s: %s, want %s", tt.path, tt.sources, got, tt.want)
		}
	}
}
