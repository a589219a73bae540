// SPDX-License-Identifier: Apache-2.0

// Package slow says whether tests do all that they can. By default they take a
// minute or two together; the gate has them do the rest. It is for tests only.
package slow

import (
	"os"
	"testing"
)

// Enabled says whether BTFGEN_SLOW=1 asks for all inputs of tests that
// otherwise take some of them.
func Enabled() bool { return os.Getenv("BTFGEN_SLOW") == "1" }

// Some returns n, how often a test is to do something, or a quarter of that unless BTFGEN_SLOW=1.
func Some(n int) int {
	if Enabled() {
		return n
	}
	return (n + 3) / 4
}

// Skip skips a test that takes long, with the reason, unless BTFGEN_SLOW=1.
func Skip(tb testing.TB) {
	tb.Helper()
	if !Enabled() {
		tb.Skip("needs BTFGEN_SLOW=1, as in the gate: it takes long")
	}
}
