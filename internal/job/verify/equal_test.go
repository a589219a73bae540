// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/testinput"
)

// TestEqualKernels checks that kernels with equal contents share a result only if their minimized BTF is equal, too, and has no
// differences: these name the kernel.
func TestEqualKernels(t *testing.T) {
	full := testinput.Kernels(t, "6.1.0-47-amd64")[0].BTF
	exec := object(t, "execsnoop.bpfel.o")
	good := minimized(t, full, exec)
	bad := change(t, good, func(types []btf.Type) { findStructs(t, types, "task_struct")[0].Members[0].Offset++ })
	dir := t.TempDir()
	var small []Minimized
	for release, b := range map[string][]byte{"1": good, "2": good, "3": bad, "4": bad, "5": good} {
		name := "debian/12/x86_64/" + release
		file := filepath.Join(dir, name+".btf")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, full, 0o600); err != nil {
			t.Fatal(err)
		}
		small = append(small, Minimized{key(name), "small " + name, b})
	}
	c, err := corpus.Open(t.Context(), []string{dir}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := Run(t.Context(), Config{Objects: []Object{exec}, Minimized: small, Corpus: c, Jobs: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Kernels) != 5 {
		t.Fatalf("%d kernels", len(rep.Kernels))
	}
	for i, k := range rep.Kernels {
		name := "debian/12/x86_64/" + string(rune('1'+i))
		if k.Name != name || k.Minimized != "small "+name || k.Records != rep.Kernels[0].Records || k.Fixups != rep.Kernels[0].Fixups || k.Records == 0 {
			t.Errorf("%s: %+v", name, k)
		}
		if differs := i == 2 || i == 3; differs != (len(k.Differences) > 0) || differs && k.Differences[0].Kernel != name {
			t.Errorf("%s: %d differences: %+v", name, len(k.Differences), k.Differences)
		}
	}
}

// TestEqualLarge compares two equal kernels that do not fit into memory together with what cilium/ebpf makes of one. The kernel whose turn it
// is waits for the result of the other one, which must not wait for memory meanwhile.
func TestEqualLarge(t *testing.T) {
	full := testinput.Kernels(t, "6.1.0-47-amd64")[0].BTF
	exec := object(t, "execsnoop.bpfel.o")
	small := minimized(t, full, exec)
	pad := limits.UnpackedInAll/(2+ciliumSize) + 1<<20 - len(full)
	full = append(append(make([]byte, 0, len(full)+pad), full...), make([]byte, pad)...) // strings are at the end
	binary.LittleEndian.PutUint32(full[20:], binary.LittleEndian.Uint32(full[20:])+uint32(pad))
	dir := t.TempDir()
	var all []Minimized
	for _, name := range []string{"debian/12/x86_64/1", "debian/12/x86_64/2"} {
		file := filepath.Join(dir, name+".btf")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, full, 0o600); err != nil {
			t.Fatal(err)
		}
		all = append(all, Minimized{key(name), name, small})
	}
	c, err := corpus.Open(t.Context(), []string{dir}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := NewJudge(t.Context(), Config{Objects: []Object{exec}, Minimized: all, Corpus: c, Jobs: 2}).run
	turn := limits.InOrder(2)
	// If the kernels wait for each other, synctest ends the test.
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 2)
		read := func(i int, first func()) {
			ended <- c.Files[i].Read(turn(t.Context(), i), func(it *corpus.Kernel) error {
				first()
				(&Judge{run: r}).kernel(t.Context(), it)
				return nil
			})
		}
		go read(0, func() {
			go read(1, func() {})
			synctest.Wait() // the second kernel has come as far as it can
		})
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	if n := len(r.report.Kernels); n != 2 || len(r.report.Skipped) > 0 {
		t.Errorf("%d kernels, %v", n, r.report.Skipped)
	}
}
