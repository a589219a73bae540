// SPDX-License-Identifier: Apache-2.0

// Package slow reports whether tests run in full. By default all tests together take
// two to three minutes; the gate runs nearly all of them in full, and the rest runs at night. It is for tests only.
package slow

import (
	"os"
	"testing"
)

// Enabled reports whether BTFGEN_SLOW is 1 or night, so that tests use nearly all of their inputs.
func Enabled() bool { return os.Getenv("BTFGEN_SLOW") == "1" || Night() }

// Night reports whether BTFGEN_SLOW=night is set, so that tests use all of their inputs.
func Night() bool { return os.Getenv("BTFGEN_SLOW") == "night" }

// Nightly skips a test that others make unlikely to fail, unless BTFGEN_SLOW=night is set.
func Nightly(tb testing.TB) {
	tb.Helper()
	if !Night() {
		tb.Skip("needs BTFGEN_SLOW=night: it takes very long")
	}
}

// Some returns the number of repetitions of a test: n with BTFGEN_SLOW=1, otherwise a
// quarter of n.
func Some(n int) int {
	if Enabled() {
		return n
	}
	return (n + 3) / 4
}

// Skip skips a slow test unless BTFGEN_SLOW=1 is set.
func Skip(tb testing.TB) {
	tb.Helper()
	if !Enabled() {
		tb.Skip("needs BTFGEN_SLOW=1, as in the gate: it takes long")
	}
}
