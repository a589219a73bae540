// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"os"
	"testing"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestEqualKernels checks that kernels are judged together if their contents are equal, and only if nothing else that counts differs.
func TestEqualKernels(t *testing.T) {
	data, err := os.ReadFile(testinput.Path(t, "testdata", "bpf", "biolat.bpfel.o"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := rule.Parse(t.Context(), "o", data)
	if err != nil {
		t.Fatal(err)
	}
	judged := 0
	r := newRun(Config{Objects: []*rule.Object{o}, Jobs: 1})
	r.inspected = func(*rule.Inventory) { judged++ }
	corp, err := corpus.Open(t.Context(), []string{testinput.Vmlinux(t)}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var first corpus.Kernel
	if err := corp.Files[0].Read(t.Context(), func(it *corpus.Kernel) error {
		first = *it
		first.BTF = bytes.Clone(it.BTF)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	item := func(change func(k *corpus.Kernel), want int) {
		t.Helper()
		k := first
		k.Key = kernel.Key{ID: "debian", VersionID: "12", Arch: "x86_64", Release: "6.1.1-1"}
		change(&k)
		k.Name = k.Key.String()
		n := judged
		r.item(t.Context(), new(target), &k)
		if judged-n != want {
			t.Errorf("%s: judged %d times, want %d", k.Name, judged-n, want)
		}
	}
	item(func(*corpus.Kernel) {}, 1)
	item(func(k *corpus.Kernel) { k.Key.ID, k.Key.VersionID, k.Key.Release = "fedora", "40", "6.1.1-2" }, 0)
	item(func(k *corpus.Kernel) { k.Key.Release = "6.2.1-1" }, 1)
	item(func(k *corpus.Kernel) { k.Key.Arch = "s390x" }, 1)
	item(func(k *corpus.Kernel) { k.Made.By = "pahole" }, 1)
	item(func(k *corpus.Kernel) { k.Config = []byte{} }, 1)
	item(func(k *corpus.Kernel) { k.Config = []byte("CONFIG_BPF=y\n") }, 1)
	item(func(k *corpus.Kernel) { k.Symbols = []byte("t bpf_loop\n") }, 1)
	item(func(k *corpus.Kernel) { k.Symbols = []byte("t bpf_loop\n") }, 0)
	if n := len(r.kernels); n != 9 || r.kernels[1].key.ID != "fedora" || &r.kernels[0].programs[0] != &r.kernels[1].programs[0] {
		t.Errorf("%d kernels, or equal ones do not share results", n)
	}
}
