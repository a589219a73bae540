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

// TestHelpersRefused checks that an entry with a mistake is refused.
func TestHelpersRefused(t *testing.T) {
	types := map[string][]string{"XDP": {"XDP"}}
	for _, bad := range []string{
		"no_such_helper\n\tcallers: XDP\n", "loop\n\tcallers: NONE\n", "loop\n\tcallers since 5: XDP\n", "loop\n\tcallers from 5.1: XDP\n", "loop\n\tcallers: XDP\nloop\n\tcallers: XDP\n",
		"loop\n\tmemory: reads r6, a key\n", "loop\n\tmemory: reads r1\n", "loop\n\tmemory: eats r1, a key\n", "loop\n\tstack: writes r2\n", "loop\n\tsizes: r2 or 1\n",
		"loop\n\tcalls back: r2\n", "loop\n\tresult: pointer\n", "loop\n\tsleeps: no\n", "loop\n\treplaced by: none\n", "loop\n\tof the map: r0\n", "loop\n\tpurpose: loops\n",
	} {
		if h, err := readHelpers(bad, types); err == nil {
			t.Errorf("%q: %v", bad, h)
		}
	}
	for _, bad := range []string{"XDP\n\tcontext:\n", "XDP\n\tsleeps: often\n", "XDP\nXDP\n", "XDP\n\tattach type: never\n"} {
		if p, err := readPrograms(bad); err == nil {
			t.Errorf("%q: %v", bad, p)
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
		if slices.ContainsFunc(r.witnesses, func(w witness) bool { return w.role == certain }) || r.Since == (Change{}) || strings.Contains(f.String(), "/") || r.machine != "" || strings.HasPrefix(f.String(), "map-flag ") {
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
