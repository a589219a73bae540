// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
)

// TestLoaderOf wants the loader that a file or the project shows, and libbpf if nothing does.
func TestLoaderOf(t *testing.T) {
	self, err := os.Executable() // a Go program that links cilium/ebpf
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"tool.o", "src/tool.o"} {
		write(t, name, "")
	}
	for _, tt := range []struct {
		sign, text, file string
		want             rule.Loader
	}{
		{"", "", "tool.o", rule.Libbpf},
		{"", "", "nosuch.o", rule.Libbpf},
		{"", "", "tool_bpfel.o", rule.EbpfGo},
		{"", "", "dir/tool_bpfeb.o", rule.EbpfGo},
		{"", "", "tool_bpfel_x86.o", rule.EbpfGo},
		{"", "", "tool_x86_bpfel.o", rule.EbpfGo},
		{"", "", "tool.bpfel.o", rule.Libbpf},
		{"", "", self, rule.EbpfGo},
		{"go.mod", "require github.com/cilium/ebpf v0.19.0\n", "tool.o", rule.EbpfGo},
		{"go.mod", "require github.com/cilium/ebpf v0.19.0\n", "src/tool.o", rule.EbpfGo},
		{"go.mod", "require github.com/cilium/ebpf v0.19.0\n", filepath.Join(os.TempDir(), "tool.o"), rule.Libbpf}, // a file outside the project
		{"go.mod", "require github.com/cilium/ebpf v0.19.0\n", "../tool.o", rule.Libbpf},
		{"go.mod", "require github.com/aquasecurity/libbpfgo v0.8.0\n", "tool.o", rule.Libbpf},
		{"Cargo.toml", "[dependencies]\naya = \"0.13\"\n", "tool.o", rule.Libbpf}, // aya is judged only if it is named
	} {
		if tt.sign != "" {
			write(t, tt.sign, tt.text)
		}
		if got := loaderOf(tt.file); got != tt.want {
			t.Errorf("%s with %s: %s, want %s", tt.file, tt.sign, got, tt.want)
		}
		if tt.sign != "" {
			if err := os.Remove(tt.sign); err != nil {
				t.Fatal(err)
			}
		}
	}
}
