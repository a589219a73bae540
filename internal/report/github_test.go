// SPDX-License-Identifier: Apache-2.0

package report

import (
	"regexp"
	"strings"
	"testing"
)

// TestGitHub wants a workflow command of one line for each cause, at most ten of a level, also where names have what separates its parts.
func TestGitHub(t *testing.T) {
	r := many(100)
	r.Programs[0].Object = "odd%,:\n::error::.o"
	r.Objects[0].Object = r.Programs[0].Object
	r.Programs[9].Findings[0].Source = "/src/a,b.c:3"
	r.Summarize()
	var b strings.Builder
	if err := GitHub(&b, r, Options{SourceRoot: "/src"}); err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`^::(error|warning|notice) file=[^,:]*,line=[1-9][0-9]*,title=btfgen%3A [a-z-]+::[^\n]+$`)
	n := 0
	for line := range strings.Lines(b.String()) {
		if n++; !form.MatchString(strings.TrimSuffix(line, "\n")) {
			t.Errorf("%q", line)
		}
	}
	if want := "::error file=odd%25%2C%3A"; n > 2*mostAnnotations || !strings.Contains(b.String(), want) || !strings.Contains(b.String(), "file=a%2Cb.c,line=3,") {
		t.Errorf("%d lines, want %s:\n%s", n, want, b.String())
	}
}
