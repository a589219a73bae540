// SPDX-License-Identifier: Apache-2.0

// Package loadtest has the running kernel judge programs that were relocated
// with minimized BTF. [Kernel] is for the tests of other packages, too.
package loadtest

import (
	"os"
	"testing"
)

const kernelBTF = "/sys/kernel/btf/vmlinux"

// Unable says what a test needs to load programs into the running kernel, or
// nothing if it may. Root alone is not enough: whoever builds a package does that
// as root in places where a program in the kernel is the last thing that is wanted.
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

// Kernel returns the BTF of the running kernel. It skips a test that cannot
// load programs into it, with the reason.
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
