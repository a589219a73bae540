// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/testinput"
)

func TestMain(m *testing.M) { testinput.Main(m) }

// TestCallersRefused checks that a line with a mistake is refused.
func TestCallersRefused(t *testing.T) {
	for _, bad := range []string{"a", "A: no_such_helper", "A: +b", "A: loop@5", "A: loop\nA: loop", "late A: loop"} {
		if c, err := readCallers(bad); err == nil {
			t.Errorf("%q: %v", bad, c)
		}
	}
}

// TestUnwitnessed checks that docs/check.md names every fact without a witness: by its release, or as one of those on other machines or flags.
func TestUnwitnessed(t *testing.T) {
	page, err := os.ReadFile(testinput.Path(t, "docs", "check.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "- These facts have no witness:")
	text, _, _ = strings.Cut(text, "\n\n")
	n := 0
	for _, f := range All() {
		r := f.row()
		if slices.ContainsFunc(r.witnesses, func(w witness) bool { return w.role == certain }) || strings.Contains(f.String(), "/") || r.machine != "" || strings.HasPrefix(f.String(), "map-flag ") {
			continue
		}
		if n++; !slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }), f.Since().String()) {
			t.Errorf("%s of %s is not in %q", f, f.Since(), text)
		}
	}
	if n < 10 {
		t.Errorf("%d facts have no witness", n)
	}
}
