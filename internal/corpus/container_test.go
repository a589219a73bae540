// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"archive/tar"
	"bytes"
	"path/filepath"
	"testing"
)

// TestHardLinks reads a tar with a hard link to BTF, which is a kernel of its own.
func TestHardLinks(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(name, link string, data []byte) {
		h := tar.Header{Name: "debian/12/x86_64/" + name, Mode: 0o644, Size: int64(len(data))}
		if link != "" {
			h.Typeflag, h.Linkname = tar.TypeLink, link
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	add("1.btf", "", blobLE)
	add("2.btf", "debian/12/x86_64/1.btf", nil)
	add("README", "nowhere", nil)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(tree(t, map[string]string{"all.tar": b.String()}), "all.tar")
	_, got, errs := readAll(t, Options{}, path)
	if len(got) != 2 || len(errs) != 0 {
		t.Errorf("%d kernels, errors %v", len(got), errs)
	}
}
