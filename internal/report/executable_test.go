// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/check"
)

// TestExecutables checks that each form has the verdict on an executable with several objects.
func TestExecutables(t *testing.T) {
	r := &check.Report{Kernels: []check.Kernel{{Name: "debian/12/x86_64/6.1.0-1"}}}
	row := func(name string, works int, status check.Status) check.ObjectRow {
		return check.ObjectRow{Object: name, Status: []check.Status{status}, Load: []check.Status{status}, Headline: check.Headline{Works: works, Total: 1}}
	}
	r.Objects = []check.ObjectRow{row("tool!a", 1, check.OK), row("tool!b", 0, check.Fails)}
	r.Executables = []check.ObjectRow{row("tool", 0, check.Fails)}
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
