// SPDX-License-Identifier: Apache-2.0

package raceflag

import "testing"

// SkipSerial skips a test that takes long and has one goroutine, in which there is no race to find.
func SkipSerial(tb testing.TB) {
	tb.Helper()
	if Enabled {
		tb.Skip("skipped: one goroutine, and much of it, without the race detector")
	}
}
