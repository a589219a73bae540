// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// compressed returns the content of a .zst file.
func compressed(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(data, nil)
}

// TestTreeIsLikeArchive compares look-ups in a tree and in an archive of the same kernels.
func TestTreeIsLikeArchive(t *testing.T) {
	a := lookupArchive(t)
	files := fstest.MapFS{"README": {}, "debian/12/x86_64/6.0.btf.tar.xz": {}, ".btfgen.1.tmp/debian/12/x86_64/6.0.btf": {}, ".git/x.btf": {}}
	for i, k := range a.Keys() {
		b, err := a.BTF(k)
		if err != nil {
			t.Fatal(err)
		}
		name := k.FileName()
		if i%2 == 1 {
			name, b = name+".zst", compressed(t, b)
		}
		files[name] = &fstest.MapFile{Data: b}
	}
	tree, err := archive.OpenTree(files)
	if err != nil {
		t.Fatal(err)
	}
	wants := a.Keys()
	for _, s := range []string{
		"rhel/8.5/x86_64/4.18.0-348.el8.x86_64", "pop/22.04/x86_64/5.15.0-2-generic", "debian/12/x86_64/6.1.0-9.5-amd64",
		"debian/12/x86_64/6.1.0-11-amd64", "debian/13/x86_64/6.12.1-amd64", "arch/-/x86_64/6.9", "-/-/-/-",
	} {
		wants = append(wants, mustKey(t, s))
	}
	for _, want := range wants {
		if m, n := a.Lookup(want, 1), tree.Lookup(want, 1); m != n {
			t.Errorf("%s with neighbours: archive %+v, tree %+v", want, m, n)
		}
		m, n := a.Lookup(want, 0), tree.Lookup(want, 0)
		if m != n {
			t.Errorf("%s: archive %+v, tree %+v", want, m, n)
		}
		if !m.Found() {
			continue
		}
		b, err1 := a.BTF(m.Key)
		c, err2 := tree.BTF(n.Key)
		if err := errors.Join(err1, err2); err != nil || !bytes.Equal(b, c) {
			t.Errorf("%s: BTFs differ (%v)", want, err)
		}
	}
	if n := len(tree.Keys()); n != a.Len() {
		t.Errorf("%d kernels of %d", n, a.Len())
	}
	if _, err := tree.BTF(kernel.Key{}); !errors.Is(err, archive.ErrNoKernel) {
		t.Errorf("error %v", err)
	}
	got, err := archive.Find(archive.Options{Archive: tree, IgnoreKernel: true, Host: kernel.HostOptions{
		OSRelease: "../kernel/testdata/os-release/debian", Release: "6.1.0-9-amd64", Arch: "x86_64",
	}})
	if err != nil || got.Source != archive.FromArchive || !bytes.Equal(got.BTF, testminimized.Kernels(t)[0].BTF) {
		t.Errorf("found %+v, %v", got, err)
	}
}

func TestOpenTreeRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		fsys fs.FS
		want string
	}{
		{"empty", fstest.MapFS{}, "tree: no file ID/VERSION_ID/ARCH/RELEASE.btf"},
		{"only .tar.xz", fstest.MapFS{"debian/12/x86_64/6.1.btf.tar.xz": {}}, "tree: no file ID/VERSION_ID/ARCH/RELEASE.btf"},
		{"a level too many", fstest.MapFS{"btf/debian/12/x86_64/6.1.btf": {}}, "tree: btf/debian/12/x86_64/6.1.btf: name is not"},
		{"no release", fstest.MapFS{"debian/12/x86_64/.btf": {}}, "tree: debian/12/x86_64/.btf: name has no release"},
		{"compressed and not", fstest.MapFS{"debian/12/x86_64/6.1.btf": {}, "debian/12/x86_64/6.1.btf.zst": {}}, "kernel debian/12/x86_64/6.1 occurs twice"},
		{"two spellings", fstest.MapFS{"amazon/2/arm64/6.1.btf": {}, "amzn/2/aarch64/6.1.btf": {}}, "kernel amzn/2/aarch64/6.1 occurs twice"},
		{"not there", os.DirFS("/nonexistent"), "no such file"},
	} {
		if tree, err := archive.OpenTree(tt.fsys); err == nil || tree != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestOpenTreeIgnores opens a tree with other files than those of kernels.
func TestOpenTreeIgnores(t *testing.T) {
	tree, err := archive.OpenTree(fstest.MapFS{
		"debian/12/x86_64/6.1.btf": {}, "6.9.btf": {}, ".git/x.btf": {}, "debian/12/x86_64/6.1.btf.tar.xz": {}, "README.md": {}, "debian/12/.cache/6.1.btf": {},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []kernel.Key{{Release: "6.9"}, mustKey(t, "debian/12/x86_64/6.1")}; !slices.Equal(tree.Keys(), want) {
		t.Errorf("got %v, want %v", tree.Keys(), want)
	}
}

// A file that cannot be read is an error with its name, and differs from all others.
func TestTreeDamage(t *testing.T) {
	const limit = 64 << 20
	bomb := compressed(t, make([]byte, limit+1))
	tree, err := archive.OpenTree(fstest.MapFS{
		"debian/12/x86_64/6.1.btf.zst": {Data: []byte("damaged")},
		"ubuntu/12/x86_64/6.1.btf.zst": {Data: []byte("damaged")},
		"debian/12/x86_64/6.2.btf.zst": {Data: bomb},
		"debian/12/x86_64/6.3.btf":     {Data: make([]byte, limit+1)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range tree.Keys() {
		if b, err := tree.BTF(k); err == nil || !strings.HasPrefix(err.Error(), "tree: "+k.FileName()) {
			t.Errorf("%s: %d bytes, error %v", k, len(b), err)
		}
	}
	if m := tree.Lookup(mustKey(t, "mint/1/x86_64/6.1"), 0); m.Found() {
		t.Errorf("took %+v", m)
	}
}
