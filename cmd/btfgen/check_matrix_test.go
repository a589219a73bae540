// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMinKernelOfMachines wants a release for each machine: kernels of one machine change nothing about another. A pair of programs for one
// function, as fentry and kprobe, needs what the one needs that came first.
func TestMinKernelOfMachines(t *testing.T) {
	kernels, tools := os.Getenv("BTFGEN_UNPACKED"), os.Getenv("BTFGEN_DEBIAN")
	if kernels == "" || tools == "" {
		t.Skip("needs BTFGEN_UNPACKED and BTFGEN_DEBIAN, kernels and Debian's tools")
	}
	for tool, want := range map[string]string{
		"opensnoop": "x86_64 5.2, arm64 5.2 (4.19 1 of 2), arm never (6.12 tried)", "tcpconnlat": "x86_64 5.2,", "tcprtt": "x86_64 5.2,", "tcpsynbl": "x86_64 5.2,",
	} {
		var stdout, stderr bytes.Buffer
		run(t.Context(), []string{"check", "--btf", kernels, "--format", "min-kernel", "any=" + filepath.Join(tools, "usr/sbin", tool)}, &stdout, &stderr)
		if !strings.HasPrefix(stdout.String(), tool+": "+want) {
			t.Errorf("%s%s, want %s: %s", &stderr, &stdout, tool, want)
		}
	}
}
