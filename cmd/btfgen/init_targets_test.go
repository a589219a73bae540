// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package main

import (
	"runtime"
	"slices"
	"testing"

	"github.com/cilium/ebpf/cmd/bpf2go/gen"
)

// TestBPF2goTargets compares the targets that init knows with those of bpf2go.
func TestBPF2goTargets(t *testing.T) {
	known := 0
	for _, id := range []string{"bpf", "bpfel", "bpfeb", "native", "386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le", "riscv64", "s390x", "wasm"} {
		var want []string
		if target, _, err := gen.FindTarget(id); err == nil {
			want, known = []string{"x_" + target.Suffix() + ".o"}, known+1
		}
		if got := bpf2goObjects("-target " + id + " x x.c"); !slices.Equal(got, want) {
			t.Errorf("-target %s on %s: %q, want %q", id, runtime.GOARCH, got, want)
		}
	}
	if known != len(bpf2goTargets)+1 { // bpf2goTargets plus native
		t.Errorf("bpf2go knows %d targets of the list, want %d", known, len(bpf2goTargets)+1)
	}
}
