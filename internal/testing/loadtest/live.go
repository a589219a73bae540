// SPDX-License-Identifier: Apache-2.0

// Package loadtest loads programs that were relocated with minimized BTF into the
// running kernel. Tests of other packages use [Kernel].
package loadtest

import (
	"os"
	"testing"
)

const kernelBTF = "/sys/kernel/btf/vmlinux"

// Unable returns what a test lacks to load programs into the running kernel, or "".
// Root alone is not enough, because packages are often built as root on machines where
// tests must not load anything.
func Unable() string {
	if os.Getenv("BTFGEN_LIVE") != "1" {
		return "needs BTFGEN_LIVE=1 to load programs into the running kernel"
	}
	if os.Geteuid() != 0 {
		return "needs root to load programs into the running kernel"
	}
	if _, err := os.Stat(kernelBTF); err != nil {
		return "needs a running kernel with BTF: " + err.Error()
	}
	return ""
}

// Kernel returns the BTF of the running kernel. It skips a test that cannot load
// programs into it.
func Kernel(tb testing.TB) []byte {
	tb.Helper()
	if why := Unable(); why != "" {
		tb.Skip(why)
	}
	data, err := os.ReadFile(kernelBTF)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}
