// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/testing/slow"
)

// TestLintNotes checks that properties of a kernel's BTF that only its maker can change do not count.
func TestLintNotes(t *testing.T) {
	dir := t.TempDir()
	vmlinux, _ := modular(t) // a kernel without functions
	write(t, filepath.Join(dir, "debian/12/x86_64/6.1.0-1-amd64.btf"), string(vmlinux))
	for _, tt := range []struct {
		args string
		want int
	}{{"corpus lint DIR", statusOK}, {"corpus lint --fail-on note DIR", statusFindings}, {"corpus lint --fail-on error,warning,note DIR", statusFindings}} {
		var stdout, stderr strings.Builder
		got := run(t.Context(), strings.Fields(strings.ReplaceAll(tt.args, "DIR", dir)), &stdout, &stderr)
		if got != tt.want || !strings.Contains(stderr.String(), "1 kernel: 0 errors, 0 warnings, 1 note\n") {
			t.Errorf("%s: exit status %d, want %d: %s", tt.args, got, tt.want, &stderr)
		}
	}
}

// TestNightly runs what examples/pipelines runs each night, twice, on kernels in BTFHub's layout that were not made for it.
func TestNightly(t *testing.T) {
	slow.Skip(t)
	hub := filepath.Join(os.Getenv("BTFGEN_CORPUS"), "public")
	if _, err := os.Stat(hub); err != nil {
		t.Skip("needs BTFGEN_CORPUS with a folder public in BTFHub's layout")
	}
	object, err := filepath.Abs("../../testdata/bpf/filelife.bpfel.o")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for range 2 {
		for _, args := range []string{
			"corpus import HUB -o kernels.btfc", "corpus lint kernels.btfc",
			"generate --btf kernels.btfc -o tracer.btfa --manifest tracer.json OBJECT", "verify tracer.btfa --btf kernels.btfc OBJECT",
		} {
			var stdout, stderr strings.Builder
			if got := run(t.Context(), strings.Fields(strings.NewReplacer("HUB", hub, "OBJECT", object).Replace(args)), &stdout, &stderr); got != statusOK {
				t.Errorf("%s: exit status %d: %s", args, got, &stderr)
			}
		}
	}
}
