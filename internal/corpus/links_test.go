// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// linkedTree is a tree of kernels and links: the name of each file, and where it leads, or "" for a file.
var linkedTree = [][2]string{
	{"k/debian/11/x86_64/5.10-a.btf", ""},
	{"k/debian/11/x86_64/5.10-b.btf", "5.10-a.btf"},
	{"k/debian/11/x86_64/5.10-c.btf", "../../../../store/object"},
	{"k/debian/11/x86_64/5.10-d.btf", "5.10-c.btf"},
	{"k/debian/11/x86_64/5.10-e.btf", "gone"},
	{"k/debian/12/x86_64/5.10-a.btf", "../../11/x86_64/5.10-a.btf"},
	{"store/object", ""},
}

// linkedKernels are the kernels of linkedTree.
var linkedKernels = []string{"debian/11/x86_64/5.10-a", "debian/11/x86_64/5.10-b", "debian/11/x86_64/5.10-c", "debian/11/x86_64/5.10-d"}

// openLinked opens a source with linkedTree, and returns its kernels and the errors of what is left out.
func openLinked(t *testing.T, sources ...string) (keys []string, left string) {
	t.Helper()
	c, err := Open(t.Context(), sources, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Skipped {
		left += s.Error() + "\n"
	}
	for _, f := range c.Files {
		err := f.Read(t.Context(), func(k *Kernel) error {
			keys = append(keys, k.Key.String())
			if !bytes.Equal(k.BTF, blobLE) {
				t.Errorf("%s has other BTF", k.Name)
			}
			return nil
		})
		if err != nil {
			left += err.Error() + "\n"
		}
	}
	for _, s := range c.Links() {
		left += s.Error() + "\n"
	}
	slices.Sort(keys)
	return keys, left
}

// checkLinked compares what openLinked returns.
func checkLinked(t *testing.T, what string, keys []string, left string) {
	t.Helper()
	if !slices.Equal(keys, linkedKernels) {
		t.Errorf("%s: kernels %v", what, keys)
	}
	for _, want := range []string{"5.10-e.btf: ", "debian/12/x86_64/5.10-a.btf: is debian/11/x86_64/5.10-a again: "} {
		if strings.Count(left, want) != 1 {
			t.Errorf("%s: no %q in %q", what, want, left)
		}
	}
}

// TestLinks reads links to kernels in a tree, to files in it and outside. A link is a kernel if its name is that of another kernel.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	for _, f := range linkedTree {
		name := filepath.Join(dir, f[0])
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		var err error
		if f[1] == "" {
			err = os.WriteFile(name, blobLE, 0o666)
		} else {
			err = os.Symlink(f[1], name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, sources := range map[string][]string{"outside": {filepath.Join(dir, "k")}, "inside": {dir}} {
		keys, left := openLinked(t, sources...)
		checkLinked(t, what, keys, left)
	}
}

// TestLinksInTar reads the same in a tar file, with the links before and behind the files.
func TestLinksInTar(t *testing.T) {
	for what, hard := range map[string]bool{"soft": false, "hard": true} {
		for _, behind := range []bool{true, false} {
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			add := func(links bool) {
				for _, f := range linkedTree {
					h := &tar.Header{Name: f[0], Mode: 0o644, Typeflag: tar.TypeReg, Size: int64(len(blobLE))}
					if (f[1] != "") != links {
						continue
					}
					if links {
						h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, f[1], 0
						if hard {
							h.Typeflag, h.Linkname = tar.TypeLink, filepath.ToSlash(filepath.Join(filepath.Dir(f[0]), f[1]))
						}
					}
					err := w.WriteHeader(h)
					if err == nil && !links {
						_, err = w.Write(blobLE)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			add(!behind)
			add(behind)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(t.TempDir(), "k.tar")
			if err := os.WriteFile(name, b.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
			keys, left := openLinked(t, name)
			checkLinked(t, what, keys, left)
		}
	}
}

// TestAbsoluteLinksInTar reads links with absolute paths in a tar file. Their root is that of the tar, as in the image of a system.
func TestAbsoluteLinksInTar(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range [][2]string{
		{"store/object", ""},
		{"k/debian/11/x86_64/5.10-a.btf", "/store/object"},
		{"k/debian/11/x86_64/5.10-b.btf", "/gone"},
	} {
		h := &tar.Header{Name: f[0], Mode: 0o644, Typeflag: tar.TypeReg, Size: int64(len(blobLE))}
		if f[1] != "" {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, f[1], 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if f[1] == "" {
			if _, err := w.Write(blobLE); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "k.tar")
	if err := os.WriteFile(name, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	keys, left := openLinked(t, name)
	if want := []string{"debian/11/x86_64/5.10-a"}; !slices.Equal(keys, want) {
		t.Errorf("kernels %v, want %v", keys, want)
	}
	if want := "5.10-b.btf: dangling link\n"; !strings.HasSuffix(left, want) {
		t.Errorf("no %q in %q", want, left)
	}
}
