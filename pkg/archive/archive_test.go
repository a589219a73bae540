// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func TestAliases(t *testing.T) {
	slow.Skip(t)
	k := testminimized.Kernels(t)[0]
	a := mustOpen(t, mustWrite(t, []archive.Kernel{{Key: mustKey(t, "amazon/2/aarch64/5.10"), BTF: k.BTF}}))
	for _, s := range []string{"amzn/2/arm64/5.10", "amazon/2/aarch64/5.10", "AMZN/2/aarch64/5.10"} {
		if _, err := a.BTF(mustKey(t, s)); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
	_, err := a.BTF(mustKey(t, "amzn/2/x86_64/5.10"))
	if !errors.Is(err, archive.ErrNoKernel) || !strings.Contains(err.Error(), "amzn/2/x86_64/5.10") {
		t.Errorf("error %v", err)
	}
	if _, err := a.BTF(kernel.Key{}); !errors.Is(err, archive.ErrNoKernel) {
		t.Errorf("error %v", err)
	}
}

func TestEmpty(t *testing.T) {
	a := mustOpen(t, mustWrite(t, nil))
	if a.Len() != 0 || a.Layouts() != 0 || len(a.Keys()) != 0 || a.Lookup(kernel.Key{}, 0).Found() {
		t.Error("an empty archive has something")
	}
}

func TestOpenFrom(t *testing.T) {
	data := mustWrite(t, testminimized.Kernels(t))
	path := filepath.Join(t.TempDir(), "x.btfa")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.OpenFile(path); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, data[:100], 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.OpenFile(path); !errors.Is(err, archive.ErrDamaged) || !strings.HasPrefix(err.Error(), path+": archive: ") {
		t.Errorf("error %v", err)
	}
	if _, err := archive.OpenFile(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestManyGoroutines(t *testing.T) {
	kernels := testminimized.Kernels(t)
	a := mustOpen(t, mustWrite(t, kernels))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			k := kernels[i%len(kernels)]
			if b, err := a.BTF(a.Lookup(k.Key, 0).Key); err != nil || !bytes.Equal(b, k.BTF) {
				t.Errorf("%s: %v", k.Key, err)
			}
		}()
	}
	wg.Wait()
}

// TestOwnership changes every argument and result of the package. The archive does not
// change.
func TestOwnership(t *testing.T) {
	kernels := testminimized.Kernels(t)
	data := mustWrite(t, kernels)
	a := mustOpen(t, bytes.Clone(data))
	clear(data)
	opened := mustWrite(t, kernels)
	b := mustOpen(t, opened)
	clear(opened)
	keys := b.Keys()
	clear(keys)
	info := b.Info()
	clear(info.Objects[0].Sum)
	clear(info.Relocations[0].Sum)
	clear(info.Objects)
	clear(info.Relocations)
	taken, err := b.BTF(kernels[0].Key)
	if err != nil {
		t.Fatal(err)
	}
	clear(taken)
	if diff := cmp.Diff(a.Keys(), b.Keys()); diff != "" {
		t.Errorf("keys: %s", diff)
	}
	if diff := cmp.Diff(a.Info(), b.Info()); diff != "" {
		t.Errorf("info: %s", diff)
	}
	for _, k := range kernels {
		if got, err := b.BTF(k.Key); err != nil || !bytes.Equal(got, k.BTF) {
			t.Errorf("%s: differs (%v)", k.Key, err)
		}
	}
}

// TestKernels checks that kernels with the same layout share their BTF, and that they are
// in the order of Keys.
func TestKernels(t *testing.T) {
	kernels := testminimized.Kernels(t)
	twin := kernels[0]
	twin.Key.Release += ".1"
	a := mustOpen(t, mustWrite(t, append(kernels, twin)))
	all, err := a.Kernels()
	if err != nil || len(all) != a.Len() {
		t.Fatalf("%d of %d kernels, %v", len(all), a.Len(), err)
	}
	first := make(map[int]*byte)
	for i, key := range a.Keys() {
		if all[i].Key != key {
			t.Errorf("%d: kernel %s, key %s", i, all[i].Key, key)
		}
		layout, ok := a.Layout(key)
		if !ok || layout < 0 || layout >= a.Layouts() {
			t.Errorf("%s: layout %d of %d", key, layout, a.Layouts())
		}
		if first[layout] == nil {
			first[layout] = &all[i].BTF[0]
		} else if first[layout] != &all[i].BTF[0] {
			t.Errorf("%s: has a copy", key)
		}
	}
	if len(first) != a.Layouts() || len(first) == len(all) {
		t.Errorf("%d kernels with %d of %d layouts", len(all), len(first), a.Layouts())
	}
}

// TestSums checks the length of the hashes in an archive.
func TestSums(t *testing.T) {
	info := mustOpen(t, mustWrite(t, testminimized.Kernels(t))).Info()
	for _, o := range info.Objects {
		if len(o.Sum) != 4 {
			t.Errorf("object %s: %d bytes", o.Name, len(o.Sum))
		}
	}
	for _, r := range info.Relocations {
		if len(r.Sum) != 8 || string(info.RelocationsFor(r.Arch)) != string(r.Sum) {
			t.Errorf("relocations of %q: %d bytes", r.Arch, len(r.Sum))
		}
	}
	o := info.Objects[0]
	if len(info.Objects) < 4 || len(info.Relocations) == 0 || o.String() != "a.o (sha256 ca978112…)" {
		t.Errorf("%s; %+v", o, info)
	}
}
