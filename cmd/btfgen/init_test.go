// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
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
}
