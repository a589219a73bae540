// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"errors"
	"testing"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/job/generate"
	"github.com/btfgen/btfgen/internal/minimize"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestMachines checks that objects for three machines resolve on every kernel of these, and that only kernels of other
// machines are skipped.
func TestMachines(t *testing.T) {
	cfg := generate.Config{Corpus: testinput.Corpus(t), Jobs: 2}
	for _, name := range []string{"regs_x86_bpfel.o", "regs_arm64_bpfel.o", "regs_s390_bpfeb.o"} {
		cfg.Objects = append(cfg.Objects, object(t, name))
	}
	rep, err := generate.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range rep.Unresolved {
		t.Errorf("%s: %s in %s on %v", u.Result, u.Relo, u.Object, u.Kernels)
	}
	for _, e := range rep.Skipped {
		if !errors.Is(e, minimize.ErrNoObject) {
			t.Error(e)
		}
	}
	done := make(map[string]int)
	for _, k := range rep.Kernels {
		done[k.Machine]++
		want := 2
		if k.Machine == "x86_64" {
			want = 3 // the register of the first argument is not that of the result
		}
		if k.Resolved != want {
			t.Errorf("%s: %d relocations, want %d", k.Name, k.Resolved, want)
		}
	}
	if len(done) != 3 || len(rep.Skipped) == 0 {
		t.Errorf("kernels of machines: %v, %d left out", done, len(rep.Skipped))
	}
	all := rep.Relocations(cfg.Objects, nil)
	if len(all) != 3 {
		t.Fatalf("%d hashes", len(all))
	}
	for i, arch := range []string{"arm64", "s390x", "x86_64"} {
		sum := core.Hash(core.OnMachine(arch, cfg.Objects...)...)
		if all[i].Arch != arch || string(all[i].Sum) != string(sum[:]) {
			t.Errorf("%s: another hash", all[i].Arch)
		}
	}
}
