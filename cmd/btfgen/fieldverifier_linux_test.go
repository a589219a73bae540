// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
)

// fieldVerifier has tests of TestField about what verifiers follow of stacks and pointers.
var fieldVerifier = map[string]func(t *testing.T, c *cases){
	"variable-size-into-fresh-buffer": func(t *testing.T, c *cases) {
		j := c.judged(t, "variable-size-into-fresh-buffer", "--btf $TESTDATA/vmlinux --select x86_64 --no-guess --loader libbpf prog.o")
		j.everywhere(t, func(kernel string) []string {
			switch {
			case strings.Contains(kernel, "/5.10"):
				return []string{"fails"}
			case strings.Contains(kernel, "/6.1."):
				return []string{"may fail"} // updates decide
			}
			return []string{"ok"}
		})
	},
	"inner-map-with-lock":    failsOn("inner-map-with-lock", "/5.10", "/6.1."),
	"stack-of-two-functions": failsOn("stack-of-two-functions", "/5.10", "/6.1.", "/6.12"),
	// before 5.11, LSM may not call bpf_d_path; since 6.4 it may not with such a pointer
	"walked-pointer-sleepable": failsOn("walked-pointer-sleepable", "/5.10", "/6.12", "/6.18", "/7."),
	// struct file has a union since 6.18
	"walked-inode-7.3": failsOn("walked-inode-7.3", "/6.18", "/7."),
	"timer-in-tracing": failsOn("timer-in-tracing", "/5.10", "/6.1.", "/6.12", "/6.18"),
}

// failsOn returns the test of a folder whose object fails on the kernels for x86_64 with these in their names, and is ok on the others.
func failsOn(folder string, releases ...string) func(t *testing.T, c *cases) {
	return func(t *testing.T, c *cases) {
		j := c.judged(t, folder, "--btf $TESTDATA/vmlinux --select x86_64 --no-guess --loader libbpf prog.o")
		j.everywhere(t, func(kernel string) []string {
			if slices.ContainsFunc(releases, func(r string) bool { return strings.Contains(kernel, r) }) {
				return []string{"fails"}
			}
			return []string{"ok"}
		})
	}
}
