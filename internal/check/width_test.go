// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestLoadWidths reads fields that are wider in the kernel. Only libbpf changes the width of loads, so that it alone fails
// where it cannot; an array that has become longer is no such case.
func TestLoadWidths(t *testing.T) {
	vmlinux := testbtf.Types(t, binary.LittleEndian, "struct task 40: before u64 0, ids u32[4] 8, wide u64[2] 24")
	data := testbtf.Object(t, binary.LittleEndian, "struct task 16: ids u32[2] 0, wide u32[2] 8",
		"program longer\nbyte_off struct task.ids\nprogram wider\nbyte_off struct task.wide", 0, 8)
	o, err := rule.Parse(t.Context(), "widths", data)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		loaders []rule.Loader
		wider   rule.Status
	}{
		{[]rule.Loader{rule.Libbpf}, rule.Fails},
		{[]rule.Loader{rule.EbpfGo}, rule.OK},
		{rule.Loaders(), rule.Fails},
	} {
		r := newRun(Config{Objects: []*rule.Object{o}, Loaders: tt.loaders})
		r.item(t.Context(), new(target), &corpus.Kernel{Key: kernel.Key{ID: "k", Arch: "x86_64", Release: "6.1"}, BTF: vmlinux})
		rep, err := r.report(t.Context())
		if err != nil || len(rep.Kernels) != 1 || len(rep.Programs) != 2 {
			t.Fatalf("%v, %v", rep, err)
		}
		for _, p := range rep.Programs {
			want, got := map[string]rule.Status{"longer": rule.OK, "wider": tt.wider}[p.Name], rule.OK
			for _, f := range p.Findings {
				if f.Relocation == "" {
					continue
				}
				if got = max(got, f.Status); f.Loader != rule.Libbpf {
					t.Errorf("%v: %s: of all loaders: %v", tt.loaders, p.Name, f)
				}
			}
			if got != want {
				t.Errorf("%v: %s: %s, want %s", tt.loaders, p.Name, got, want)
			}
		}
	}
}
