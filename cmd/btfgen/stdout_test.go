// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fullDisk is standard output on a full disk.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

// TestFullOutput runs commands whose output cannot be written.
func TestFullOutput(t *testing.T) {
	const kernels, object = "../../testdata/vmlinux/debian/12/x86_64", "../../testdata/bpf/execsnoop.bpfel.o"
	tmp := t.TempDir()
	archive := filepath.Join(tmp, "a.btfa")
	args := [][]string{
		{"generate", "-q", "--json", "--btf", kernels, "-o", archive, object},
		{"--version"}, {completeWord, "gen"}, {"completion", "bash"}, {"explain"}, {"explain", "damaged"},
		{"archive", "list", archive}, {"archive", "list", "--json", archive},
		{"archive", "lookup", "--root", tmp, "--arch", "x86_64", "--release", "6.1.0-47-amd64", "--json", archive},
		{"archive", "convert", "--json", "-o", filepath.Join(tmp, "b.btfa"), archive},
		{"corpus", "list", kernels}, {"corpus", "list", "--json", kernels}, {"corpus", "lint", "--json", kernels},
		{"corpus", "import", "--json", "-o", filepath.Join(tmp, "b.btfc"), kernels},
		{"corpus", "extract", "--json", "-o", filepath.Join(tmp, "tree"), kernels},
		{"min_core_btf", kernels, "-", object}, {"min_core_btf", "--json", kernels, filepath.Join(tmp, "min.btf"), object},
		{"relolog", "--btf", kernels, object}, {"relolog", "--json", "--btf", kernels, object},
		{"verify", "--json", "--btf", kernels, archive, object}, {"verify", "--json", "--covers", archive, object},
	}
	for _, p := range topics(newApp(io.Discard, io.Discard)) {
		args = append(args, append(strings.Fields(p.name)[1:], "--help"))
	}
	for _, format := range reportFormats {
		if format == "github" {
			continue // the object fails on no kernel, and so it prints nothing
		}
		args = append(args, []string{"check", "--btf", kernels, "--format", format, object})
	}
	for _, a := range args {
		t.Run(strings.Join(a, " "), func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if s := run(t.Context(), a, &stdout, &stderr); s != statusOK && s != statusFindings || stdout.Len() == 0 {
				t.Fatalf("with room: exit status %d, %d bytes\n%s", s, stdout.Len(), &stderr)
			}
			stderr.Reset()
			if s := run(t.Context(), a, fullDisk{}, &stderr); s != statusFailed {
				t.Errorf("exit status %d, want %d", s, statusFailed)
			}
			if n := strings.Count(stderr.String(), "btfgen: standard output: no space left on device\n"); n != 1 {
				t.Errorf("%d messages, want one:\n%s", n, &stderr)
			}
		})
	}
}
