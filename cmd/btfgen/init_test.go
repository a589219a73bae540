// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"slices"
	"testing"

	"github.com/cilium/ebpf/cmd/bpf2go/gen"
)

// TestBpf2goObjects compares the names of objects with bpf2go's rules.
func TestBpf2goObjects(t *testing.T) {
	for _, tt := range []struct {
		line string
		want []string
	}{
		{"Exec exec.bpf.c", []string{"exec_bpfel.o", "exec_bpfeb.o"}},
		{"-tags linux -target amd64,s390x --type event -no-strip Exec exec.bpf.c -- -I. -O2", []string{"exec_x86_bpfel.o", "exec_s390_bpfeb.o"}},
		{"-output-dir=../bpf -output-stem net -output-suffix _v2 -target bpf Probes net.bpf.c", []string{"../bpf/net_bpf_v2.o"}},
		{"-cc $BPF_CLANG -target $TARGETS Exec exec.bpf.c", nil},
		{"-unknown 1 Exec exec.bpf.c", nil},
		{"Exec", nil},
	} {
		if got := bpf2goObjects(tt.line); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.line, got, tt.want)
		}
	}
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
	if known != len(bpf2goTargets)+1 { // and native
		t.Errorf("bpf2go knows %d targets of the list, want %d", known, len(bpf2goTargets)+1)
	}
}
