// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestAmbiguous has a program and a function that it calls, with relocations that cilium/ebpf calls
// ambiguous together. libbpf, and cilium/ebpf in another program, resolve each.
func TestAmbiguous(t *testing.T) {
	o, err := rule.Parse(t.Context(), "o", testbtf.Object(t, binary.LittleEndian, "struct req 12: a int 0, b int 4", `
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
		loaders []rule.Loader
		want    rule.Status // verdict on caller
		why     rule.Code
	}{
		{[]rule.Loader{rule.Libbpf}, rule.OK, ""},
		{[]rule.Loader{rule.EbpfGo}, rule.Fails, rule.EbpfGoRefuses},
		{rule.Loaders(), rule.Fails, rule.EbpfGoRefuses},
	} {
		r := newRun(Config{Objects: []*rule.Object{o}, Loaders: tt.loaders})
		r.item(t.Context(), new(target), &corpus.Kernel{Key: kernel.Key{ID: "k", Arch: "x86_64", Release: "6.1"}, BTF: vmlinux})
		rep, err := r.report(t.Context())
		if err != nil || len(rep.Kernels) != 1 {
			t.Fatalf("%v, %v", rep, err)
		}
		for _, p := range rep.Programs {
			want, why := rule.OK, rule.Code("")
			if p.Name == "caller" {
				want, why = tt.want, tt.why
			}
			if got := statusOf(&p, 0, rule.FamilyCORE); got != want {
				t.Errorf("%s with %v: %v, want %v", p.Name, tt.loaders, got, want)
			}
			for _, f := range p.Findings {
				if rule.FamilyOf(f.Code) == rule.FamilyCORE && (f.Code != why || f.Cause != relo.CauseAmbiguous || f.Stops != rule.ProgramStops || f.Loader != rule.EbpfGo) {
					t.Errorf("%s with %v: %+v", p.Name, tt.loaders, f)
				}
			}
		}
	}
}

// TestAmbiguousExistence checks the verdicts where types of a name have a field at different places. For libbpf even whether it exists is
// ambiguous; cilium/ebpf resolves that if no other relocation of the program is about the place.
func TestAmbiguousExistence(t *testing.T) {
	for loader, want := range map[rule.Loader]map[string]rule.Status{
		rule.Libbpf: {"exists": rule.Fails, "offset": rule.Fails, "size": rule.Fails, "type_id": rule.OK},
		rule.EbpfGo: {"exists": rule.OK, "offset": rule.Fails, "size": rule.Fails, "type_id": rule.OK},
	} {
		rep := runWith(t, Config{Loaders: []rule.Loader{loader}}, "ambiguous.bpfel")
		for program, status := range want {
			if p, k := find(t, rep, program, "debian/11/x86_64/5.10.0-30-amd64"); p.Load[k] != status {
				t.Errorf("%s with %s: %s, want %s: %v", program, loader, p.Load[k], status, p.Findings)
			}
		}
	}
}
