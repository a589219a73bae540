// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"archive/tar"
	"bytes"
	"path/filepath"
	"testing"

	"github.com/btfgen/btfgen/internal/limits"
)

// TestHardLinks reads a tar in which equal BTFs are hard links to the first.
func TestHardLinks(t *testing.T) {
	large := append(bytes.Clone(blobLE), make([]byte, limits.LinkedMember)...)
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
	add("3.btf", "", blobBE)
	add("4.btf", "./debian/12/x86_64/3.btf", nil)
	add("5.btf", "nowhere.btf", nil)
	add("6.btf", "", large)
	add("7.btf", "debian/12/x86_64/6.btf", nil)
	add("README", "nowhere", nil)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(tree(t, map[string]string{"all.tar": b.String()}), "all.tar")
	_, got, errs := readAll(t, Options{}, path)
	want := map[string][]byte{"1": blobLE, "2": blobLE, "3": blobBE, "4": blobBE, "6": large}
	if len(got) != len(want) {
		t.Errorf("%d kernels, want %d", len(got), len(want))
	}
	for _, k := range got {
		if !bytes.Equal(k.btf, want[k.Key.Release]) {
			t.Errorf("%s has %d bytes, not those expected", k.Name, len(k.btf))
		}
	}
	if len(errs) != 2 {
		t.Fatalf("errors %v, want two", errs)
	}
	for i, link := range []string{"5.btf: hard link to nowhere.btf", "7.btf: hard link to debian/12/x86_64/6.btf"} {
		if want := path + "!debian/12/x86_64/" + link + ", which is missing or too large to be kept"; errs[i].Error() != want {
			t.Errorf("error %q, want %q", errs[i], want)
		}
	}
}
