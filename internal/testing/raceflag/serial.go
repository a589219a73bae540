// SPDX-License-Identifier: Apache-2.0

package raceflag

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/internal/workers"
)

// SkipSerial skips a slow test of a single goroutine with the race detector, which has nothing to detect there. Without the detector the
// test fails if package workers shares its work between goroutines, in this process or in one that calls [Report].
func SkipSerial(tb testing.TB) {
	tb.Helper()
	if Enabled {
		tb.Skip("skipped with the race detector: slow, and only one goroutine")
	}
	before := workers.Shared()
	// Processes inherit the variable. A test that calls SkipSerial within another one leaves that one's.
	children := os.Getenv(reportTo)
	if children == "" {
		children = filepath.Join(tb.TempDir(), "shared")
		os.Setenv(reportTo, children)
		tb.Cleanup(func() { os.Unsetenv(reportTo) })
	}
	tb.Cleanup(func() {
		if n := workers.Shared() - before; n > 0 {
			tb.Errorf("the test claims to be serial, and work was shared between goroutines %d times", n)
		}
		if args, err := os.ReadFile(children); err == nil {
			tb.Errorf("the test claims to be serial, and these processes shared work between goroutines:\n%s", args)
		}
	})
}

// reportTo is the environment variable with the path of the file to which Report writes.
const reportTo = "BTFGEN_TEST_SHARED"

// Report tells the test that started this process if its work was shared between goroutines. It is called when the process ends.
func Report() {
	path := os.Getenv(reportTo)
	if path == "" || workers.Shared() == 0 {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return // the test has ended
	}
	defer f.Close()
	for _, arg := range os.Args[1:] {
		f.WriteString(arg + " ")
	}
	f.WriteString("\n")
}
