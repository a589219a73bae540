// SPDX-License-Identifier: Apache-2.0

package raceflag

import "testing"

// SkipSerial skips a slow test with one goroutine, which has no races.
func SkipSerial(tb testing.TB) {
	tb.Helper()
	if Enabled {
		tb.Skip("skipped with the race detector: slow, and only one goroutine")
	}
}
