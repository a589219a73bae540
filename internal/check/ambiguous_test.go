// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestAmbiguous has a program whose relocation cilium/ebpf calls ambiguous
// together with that of a function that it calls. libbpf, and cilium/ebpf in
// another program, resolve each.
func TestAmbiguous(t *testing.T) {
	o, err := Parse(t.Context(), "o", testbtf.Object(t, binary.LittleEndian, "struct req 12: a int 0, b int 4", `
		program alone
		byte_off struct req.a
		program caller
		byte_off struct req.a
		call callee
		function callee
		byte_off struct req.b`, 0, 0, 4))
	if err != nil {
		t.Fatal(err)
	}
	vmlinux := testbtf.Types(t, binary.LittleEndian, "struct req 12: a int 0\n struct req#2 12: b int 8\n struct req#3 12: a int 0, b int 4")
	for _, tt := range []struct {
		loaders []Loader
		want    Status // of caller
		why     Code
	}{
		{[]Loader{Libbpf}, OK, ""},
		{[]Loader{EbpfGo}, Fails, EbpfGoRefuses},
		{Loaders(), Fails, EbpfGoRefuses},
	} {
		r := newRun(Config{Objects: []*Object{o}, Loaders: tt.loaders})
		r.item(t.Context(), new(target), &corpus.Kernel{Key: kernel.Key{ID: "k", Arch: "x86_64", Release: "6.1"}, BTF: vmlinux})
		rep, err := r.report(t.Context())
		if err != nil || len(rep.Kernels) != 1 {
			t.Fatalf("%v, %v", rep, err)
		}
		for _, p := range rep.Programs {
			want, why := OK, Code("")
			if p.Name == "caller" {
				want, why = tt.want, tt.why
			}
			if got := statusOf(&p, 0, FamilyCORE); got != want {
				t.Errorf("%s with %v: %v, want %v", p.Name, tt.loaders, got, want)
			}
			for _, f := range p.Findings {
				if FamilyOf(f.Code) == FamilyCORE && (f.Code != why || f.Cause != relo.CauseAmbiguous || f.Stops != ProgramStops || f.Loader != EbpfGo) {
					t.Errorf("%s with %v: %+v", p.Name, tt.loaders, f)
				}
			}
		}
	}
}
