// SPDX-License-Identifier: Apache-2.0

package main

import (
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
}
