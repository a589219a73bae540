// SPDX-License-Identifier: Apache-2.0

package btfgen_test

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/btfgen/btfgen/"

// TestBoundaries holds which packages of the module may know of each other.
func TestBoundaries(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	// What each of these may import of the module; others are free, but
	// nothing imports cmd, and the judges are for tests.
	allowed := map[string][]string{
		"internal/btfenc":     {},
		"internal/limits":     {},
		"internal/rawbtf":     {"internal/btfenc", "internal/limits"},
		"internal/canon":      {"internal/btfenc", "internal/limits"},
		"internal/engine":     {"internal/btfenc", "internal/limits", "internal/rawbtf"},
		"internal/unwrap":     {"internal/engine", "pkg/relolog"},
		"internal/machine":    {"internal/btfenc", "internal/engine", "internal/rawbtf", "pkg/kernel"},
		"pkg/relolog":         {"internal/engine", "internal/machine", "pkg/kernel"},
		"pkg/minimize":        {"internal/btfenc", "internal/canon", "internal/engine", "internal/limits", "internal/rawbtf", "internal/unwrap", "pkg/relolog"},
		"pkg/kernel":          {},
		"internal/btfa":       {"internal/btfenc", "pkg/kernel"},
		"internal/btfc":       {"internal/btfa", "internal/btfenc", "internal/defect", "internal/limits", "internal/rawbtf", "pkg/kernel"},
		"pkg/archive":         {"internal/btfa", "internal/btfenc", "internal/canon", "pkg/kernel"},
		"pkg/archive/btfspec": {"internal/rawbtf", "pkg/archive"},
		"internal/bpfprog":    {"internal/btfenc", "internal/limits", "internal/rawbtf"},
		"internal/interp":     {"internal/bpfprog", "internal/limits"},
	}
	seen := 0
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		imports := strings.Fields(line)
		from := strings.TrimPrefix(imports[0], module)
		may, limited := allowed[from]
		if limited {
			seen++
		}
		for _, to := range imports[1:] {
			to, ours := strings.CutPrefix(to, module)
			switch {
			case !ours:
			case strings.HasPrefix(to, "cmd/"), to == "internal/oracle", to == "internal/loadtest":
				t.Errorf("%s imports %s", from, to)
			case limited && !contains(may, to):
				t.Errorf("%s imports %s, which it must not know", from, to)
			}
		}
	}
	if seen != len(allowed) {
		t.Errorf("%d of %d packages found", seen, len(allowed))
	}
}

func contains(l []string, s string) bool {
	for _, x := range l {
		if x == s {
			return true
		}
	}
	return false
}
