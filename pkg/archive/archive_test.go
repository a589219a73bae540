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

	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

func TestAliases(t *testing.T) {
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
