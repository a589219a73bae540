// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/check/verdict"
)

// TestExecutables checks that each form has the verdict on an executable with several objects.
func TestExecutables(t *testing.T) {
	r := &verdict.Report{Kernels: []verdict.Column{{Name: "debian/12/x86_64/6.1.0-1"}}}
	row := func(name string, works int, status rule.Status) verdict.ObjectRow {
		return verdict.ObjectRow{Object: name, Status: []rule.Status{status}, Load: []rule.Status{status}, Headline: verdict.Headline{Works: works, Total: 1}}
	}
	r.Objects = []verdict.ObjectRow{row("tool!a", 1, rule.OK), row("tool!b", 0, rule.Fails)}
	r.Executables = []verdict.ObjectRow{row("tool", 0, rule.Fails)}
	for format, want := range map[string]string{
		"text":       "\nexecutables:\n  tool: None of 1 kernel.\n\nobjects:\n  tool!b: None of 1 kernel.\n",
		"markdown":   "\n- **tool**: None of 1 kernel.\n- tool!b: None of 1 kernel.\n",
		"min-kernel": "tool: None of 1 kernel.\n",
		"table":      "| distribution | Linux | tool |\n|---|---|:-:|\n| debian 12 | 6.1 | ❌ |\n",
		"html":       `"executables":[{"n":"tool","h":"None of 1 kernel.","v":"8"}]`,
		"json":       `"executables":[{"object":"tool","programs":null,"status":["fails"],`,
	} {
		var b bytes.Buffer
		if err := Formats[format](&b, r, Options{}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) || (format == "min-kernel" || format == "table") && b.String() != want {
			t.Errorf("%s:\n%s\nwant\n%s", format, &b, want)
		}
	}
}
