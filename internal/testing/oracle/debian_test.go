// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/testing/slow"
)

// maxKernel is the size in bytes of the largest kernel BTF on which all objects are
// tried. A larger, hardly deduplicated one gets only the largest objects.
const maxKernel, few = 20 << 20, 3

// TestDebian runs all BPF objects of Debian's packages against kernels and checks that
// Parse understands every line of bpftool. BTFGEN_DEBIAN is a directory with unpacked
// packages. BTFGEN_BTF is a directory with raw BTF files (*.btf); the default is the
// running kernel.
func TestDebian(t *testing.T) {
	slow.Nightly(t)
	root := os.Getenv("BTFGEN_DEBIAN")
	if root == "" {
		t.Skip("needs BTFGEN_DEBIAN")
	}
	bpftool := Need(t, "bpftool")
	objects, kernels := debianObjects(t, root), rawKernels(t)
	pairs, failed, records, withCore := 0, 0, 0, map[string]bool{}
	out := filepath.Join(t.TempDir(), "out.btf")
	for _, kernel := range kernels {
		objects := objects
		if st, err := os.Stat(kernel); err != nil {
			t.Fatal(err)
		} else if st.Size() > maxKernel {
			objects = objects[:min(few, len(objects))]
		}
		var why []string
		for _, object := range objects {
			res, log, err := run(t.Context(), bpftool, kernel, out, object)
			if err != nil {
				t.Fatal(err)
			}
			checkAll(t, res, log)
			pairs++
			records += len(res.Records)
			if len(res.Records) > 0 {
				withCore[object] = true
			}
			if ok := res.ExitStatus == 0; ok != (res.Failure == "") || ok != res.Written {
				t.Errorf("%s on %s: exit status %d, failure %q, written %v",
					filepath.Base(object), kernel, res.ExitStatus, res.Failure, res.Written)
			}
			if res.ExitStatus != 0 {
				failed++
				why = append(why, filepath.Base(object)+": "+res.Failure)
			}
		}
		t.Logf("%s: %d of %d objects failed %s", filepath.Base(kernel), len(why), len(objects), strings.Join(why, "\n\t"))
	}
	t.Logf("%d objects, %d with relocations, on %d kernels: %d pairs, %d relocations; bpftool failed on %d pairs",
		len(objects), len(withCore), len(kernels), pairs, records, failed)
	if records == 0 {
		t.Error("no relocation at all")
	}
}

// debianObjects writes the distinct objects below root to files and returns their
// paths, the largest first.
func debianObjects(t *testing.T, root string) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	sizes, seen := map[string]int{}, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		objs, err := embedded.ReadFile(path)
		if errors.Is(err, embedded.ErrNone) {
			return nil
		}
		for _, o := range objs {
			if seen[string(o.Data)] {
				continue
			}
			seen[string(o.Data)] = true
			p := filepath.Join(dir, fmt.Sprintf("%s%s.o", e.Name(), o.Name))
			paths = append(paths, p)
			sizes[p] = len(o.Data)
			if err := os.WriteFile(p, o.Data, 0o600); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d objects below %s, error %v", len(paths), root, err)
	}
	slices.SortFunc(paths, func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), strings.Compare(a, b))
	})
	return paths
}

// rawKernels returns the BTF files of whole kernels. Those of modules lie in a directory
// named modules.
func rawKernels(t *testing.T) []string {
	t.Helper()
	root := os.Getenv("BTFGEN_BTF")
	if root == "" {
		const own = "/sys/kernel/btf/vmlinux"
		if _, err := os.Stat(own); err != nil {
			t.Skipf("needs BTFGEN_BTF or %s", own)
		}
		return []string{own}
	}
	var paths []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && e.Name() == "modules" {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".btf" && e.Type().IsRegular() {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d kernels below %s, error %v", len(paths), root, err)
	}
	return paths
}
