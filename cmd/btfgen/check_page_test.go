// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestPageCommand wants the command line of the run in the page, whatever the arguments of the process are.
func TestPageCommand(t *testing.T) {
	var stdout, stderr bytes.Buffer
	args := []string{"check", "--btf", "../../testdata/vmlinux/debian/12/x86_64", "--format", "html", "../../testdata/bpf/tcplife.bpfel.o"}
	if got := run(t.Context(), args, &stdout, &stderr); got != statusOK {
		t.Fatalf("status %d: %s", got, &stderr)
	}
	if want := `"command":"btfgen ` + strings.Join(args, " ") + `"`; !strings.Contains(stdout.String(), want) {
		t.Errorf("no %s in the page", want)
	}
}
