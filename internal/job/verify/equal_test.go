// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/corpus"
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
