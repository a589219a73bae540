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
	row := func(name string, status rule.Status) verdict.ObjectRow {
		return verdict.ObjectRow{Object: name, Status: []rule.Status{status}, Load: []rule.Status{status}}
	}
	r.Objects = []verdict.ObjectRow{row("tool!a", rule.OK), row("tool!b", rule.Fails)}
	r.Executables = []verdict.ObjectRow{row("tool", rule.Fails)}
	r.Summarize()
	for format, want := range map[string]string{
		"text":       "\n       x86_64\n       6.1\ntool   fails\ntool!a ok\ntool!b fails\n",
		"markdown":   "\n| tool | ❌ |\n| tool!b | ❌ |\n| tool!a | ✅ |\n",
		"min-kernel": "tool: x86_64 never (6.1 tried)\n",
		"table":      "| distribution | Linux | tool |\n|---|---|:-:|\n| debian 12 | 6.1 | ❌ |\n",
		"html":       `"w":[["fails",8],["ok",0]],"r":[{"n":"tool","o":-1,"c":[0],"m":"x86_64 never (6.1 tried)"}`,
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
