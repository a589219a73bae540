// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// files returns files, two of them equal, one with an odd length.
func files() []File {
	return []File{
		{Name: "debian/12/x86_64/6.1.0-47-amd64.btf", Data: bytes.Repeat([]byte("a"), 700)},
		{Name: "arch/x86_64/6.9.1-arch1-1.btf", Data: []byte("bb")},
		{Name: "debian/12/arm64/6.1.0-50-arm64.btf", Data: bytes.Repeat([]byte("a"), 700)},
		{Name: "lone.btf", Data: bytes.Repeat([]byte("c"), 512)},
	}
}

// read reads the files of a directory or tar.
func read(path string) ([]File, error) {
	list, _, err := readList(context.Background(), path)
	if err != nil {
		return nil, err
	}
	return readFiles(context.Background(), path, list)
}

func TestRoundTrip(t *testing.T) {
	want := files()
	slices.SortFunc(want, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	for name, format := range map[string]Format{"x": Dir, "x.tar.gz": TarGz, "x.tgz": TarGz, "x.tar.xz": TarXz, "x.tar.zst": TarZst} {
		if f, err := FormatOf(name); err != nil || f != format {
			t.Errorf("%s: format %d, %v", name, f, err)
		}
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		for range 2 { // the second replaces the first
			if _, err := (&Output{Path: path, Format: format}).write(context.Background(), files(), nil); err != nil {
				t.Fatal(err)
			}
		}
		got, err := read(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if l, _ := os.ReadDir(dir); len(l) != 1 {
			t.Errorf("%s: left %d files behind", name, len(l)-1)
		}
		if format == Dir {
			continue
		}
		first, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		shuffled := files()
		slices.Reverse(shuffled)
		if _, err := (&Output{Path: path, Format: format}).write(context.Background(), shuffled, nil); err != nil {
			t.Fatal(err)
		}
		if second, _ := os.ReadFile(path); !bytes.Equal(first, second) {
			t.Errorf("%s: bytes depend on the order of files", name)
		}
		for _, n := range []int{0, 3, len(first) / 2, len(first) - 1} {
			if err := os.WriteFile(path, first[:n], 0o666); err != nil {
				t.Fatal(err)
			}
			if _, err := read(path); err == nil || !strings.HasPrefix(err.Error(), path+": ") {
				t.Errorf("%s: read the first %d bytes of %d: %v", name, n, len(first), err)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for _, bad := range [][]File{
		{{Name: "../x.btf"}},
		{{Name: "/x.btf"}},
		{{Name: "x.btf"}, {Name: "x.btf"}},
	} {
		for _, bcc := range []bool{false, true} {
			o := Output{Path: filepath.Join(dir, "x.tar.gz"), Format: TarGz, Layout: Layouts[map[bool]int{true: 1}[bcc]]}
			if _, err := o.write(context.Background(), bad, nil); err == nil {
				t.Errorf("%s was written, bcc %t", bad[0].Name, bcc)
			}
		}
	}
	for _, name := range []string{"x.zip", "x.tar", "x.tar.bz2", "x.btf", "x.gz"} {
		if _, err := FormatOf(name); err == nil {
			t.Errorf("%s has a format", name)
		}
	}
	if l, _ := os.ReadDir(dir); len(l) > 0 {
		t.Errorf("%d files left behind", len(l))
	}
}

// bccFind looks up a name in a tar as bcc's tar_file_start does. It reads only the name, 100 bytes at 0, and the octal size, 12
// bytes at 124, of each header, up to an empty name.
func bccFind(tar []byte, want string) (data []byte, ok bool) {
	for at := 0; tar[at] != 0; {
		name, _, terminated := bytes.Cut(tar[at:at+100], []byte{0})
		var size int
		if _, err := fmt.Sscanf(string(tar[at+124:at+136]), "%o", &size); err != nil || !terminated {
			return nil, false
		}
		if string(name) == want {
			return tar[at+512 : at+512+size], true
		}
		at += 512 * (1 + (size+511)/512)
	}
	return nil, false
}

func TestBCC(t *testing.T) {
	o := Output{Path: filepath.Join(t.TempDir(), "min_core_btfs.tar.gz"), Format: TarGz, Layout: Layouts[1]}
	in := append(files(), File{Name: "fedora//x86_64/6.5.btf", Data: []byte("no version")})
	if _, err := o.write(context.Background(), in, nil); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	tar, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range in {
		if got, ok := bccFind(tar, "./"+f.Name); !ok || !bytes.Equal(got, f.Data) {
			t.Errorf("%s: found %v, %d bytes of %d", f.Name, ok, len(got), len(f.Data))
		}
	}
	if _, ok := bccFind(tar, "./debian/12/x86_64/6.1.btf"); ok {
		t.Error("found a missing file")
	}
	headers := 0
	for at := 0; tar[at] != 0; headers++ {
		h := tar[at:]
		if string(h[257:265]) != "ustar\x0000" || h[156] != '0' || h[345] != 0 {
			t.Errorf("header %d is not plain ustar: %q", headers, h[:512])
		}
		var size int
		fmt.Sscanf(string(h[124:136]), "%o", &size)
		at += 512 * (1 + (size+511)/512)
	}
	if headers != len(in) {
		t.Errorf("%d headers for %d files", headers, len(in))
	}
	got, err := read(o.Path)
	if err != nil || len(got) != len(in) || got[0].Name != "arch/x86_64/6.9.1-arch1-1.btf" {
		t.Errorf("read %v, %v", got, err)
	}
	long := File{Name: "a/" + strings.Repeat("b", 96)}
	if _, err := o.write(context.Background(), []File{long}, nil); err == nil || !strings.Contains(err.Error(), "bcc reads up to 99") {
		t.Errorf("a long name: %v", err)
	}
	long.Name = long.Name[:97]
	if _, err := o.write(context.Background(), []File{long}, nil); err != nil {
		t.Error(err)
	}
}
