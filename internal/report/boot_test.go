// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"
)

// TestLogEnd checks which lines of a verifier's log are printed.
func TestLogEnd(t *testing.T) {
	const insn, source, stats = "12: (85) call unknown#9999", "; return no_such_helper(); @ x.c:3", "processed 13 insns (limit 1000000)"
	for log, want := range map[string]string{
		"": "",
		source + "\n" + insn + "\ninvalid func unknown#9999\n" + stats:                          source + "\n" + insn + "\ninvalid func unknown#9999",
		insn + "\ninvalid func unknown#9999\nverification time 5 usec\nstack depth 0\n" + stats: insn + "\ninvalid func unknown#9999",
		insn + strings.Repeat("\nstate", 70) + "\nbad\n" + stats:                                strings.Repeat("state\n", 5) + "bad",
		stats: stats,
	} {
		if got := strings.Join(logEnd(strings.Split(log, "\n")), "\n"); got != want {
			t.Errorf("%q: %q, want %q", log, got, want)
		}
	}
}
