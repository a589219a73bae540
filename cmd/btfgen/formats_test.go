// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/report"
)

// TestReportFormats checks that --format of check offers the formats of package report, and that docs/check.md describes each.
func TestReportFormats(t *testing.T) {
	if got, want := slices.Sorted(slices.Values(reportFormats)), slices.Sorted(maps.Keys(report.Formats)); !slices.Equal(got, want) {
		t.Errorf("--format offers %q, package report has %q", got, want)
	}
	page, err := os.ReadFile("../../docs/check.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Output\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, name := range reportFormats {
		if !strings.Contains(section, "`"+name+"`") && !strings.Contains(section, "`--"+name+"`") {
			t.Errorf("docs/check.md, Output, does not describe %s", name)
		}
	}
}
