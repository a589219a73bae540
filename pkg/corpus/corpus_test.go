// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/pkg/corpus"
)

// TestKernels checks that iteration goes on after a damaged kernel, and ends where it should.
func TestKernels(t *testing.T) {
	good, err := os.ReadFile("../../testdata/vmlinux/debian/12/x86_64/6.1.0-47-amd64.btf.zst")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"1.btf.zst": good[:len(good)/2], "2.btf.zst": good, "3.btf.zst": good} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	count := func(ctx context.Context, stop int, sources []string, opts corpus.Options) (kernels int, errs []error) {
		for k, err := range corpus.Kernels(ctx, sources, opts) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if k.Target.Name() == "" || k.Path == "" {
				t.Errorf("%+v", k)
			}
			if kernels++; kernels == stop {
				break
			}
		}
		return kernels, errs
	}
	if n, errs := count(t.Context(), 0, []string{dir}, corpus.Options{}); n != 2 || len(errs) != 1 {
		t.Errorf("%d kernels, %v", n, errs)
	}
	if n, errs := count(t.Context(), 1, []string{dir}, corpus.Options{}); n != 1 || len(errs) != 1 {
		t.Errorf("stopped: %d kernels, %v", n, errs)
	}
	for name, opts := range map[string]corpus.Options{"selector": {Select: []string{"debian>"}}, "modules": {Modules: "a,,b"}, "none selected": {Exclude: []string{"*"}}} {
		if n, errs := count(t.Context(), 0, []string{"../../testdata/vmlinux"}, opts); n != 0 || len(errs) != 1 {
			t.Errorf("%s: %d kernels, %v", name, n, errs)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if n, errs := count(ended, 0, []string{dir}, corpus.Options{}); n != 0 || len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("cancelled: %d kernels, %v", n, errs)
	}
}
