// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"bytes"
	"context"
	"debug/elf"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/btfa"
	"github.com/btfgen/btfgen/internal/testing/readers"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/internal/testing/testminimized"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// testObjects returns the names of the objects in testdata/bpf.
func testObjects(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("../../testdata/bpf/*.o")
	if err != nil || len(paths) < 50 {
		t.Fatal(len(paths), err)
	}
	for i, p := range paths {
		paths[i] = filepath.Base(p)
	}
	return paths
}

// openFor opens an archive for objects with Go and a reader.
func openFor(t testing.TB, c *readers.Reader, objects ...archive.Object) *archive.Archive {
	t.Helper()
	var b bytes.Buffer
	if err := archive.Write(context.Background(), &b, archive.Info{Objects: objects}, nil); err != nil {
		t.Fatal(err)
	}
	if got := c.Open(t, b.Bytes()); got.Status != readers.OK {
		t.Fatal(got.Error)
	}
	return mustOpen(t, b.Bytes())
}

// TestReadersCovers compares a reader with Go on archives for one object each.
func TestReadersCovers(t *testing.T) {
	slow.Skip(t)
	readers.Each(t, readers.Compiled, func(t *testing.T, c *readers.Reader) {
		covered := 0
		names := testObjects(t)
		for i, name := range names {
			a := openFor(t, c, archive.NewObject(name, bpfObject(t, name)))
			for j := max(0, i-2); j < len(names) && j < i+3; j++ {
				data := bpfObject(t, names[j])
				err := a.Covers(archive.NewObject(names[j], data))
				status, text := c.Covers(t, data, "")
				if err == nil != (status == readers.OK) || err != nil && status != readers.NotCovered {
					t.Errorf("archive for %s, object %s: Go says %v, the reader says %q (%d)", name, names[j], err, text, status)
				}
				if err == nil {
					covered++
				}
			}
		}
		if covered < len(names) {
			t.Errorf("%d of %d objects covered", covered, len(names))
		}
	})
}

// TestReadersCoversText compares the errors of a reader.
func TestReadersCoversText(t *testing.T) {
	readers.Each(t, readers.All, func(t *testing.T, c *readers.Reader) {
		exec, shapes, tool := bpfObject(t, "execsnoop.bpfel.o"), bpfObject(t, "shapes.bpfel.o"), bpfObject(t, "tool.bpfel.o")
		old := archive.NewObject("exec.bpf.o", exec)
		old.Fingerprint = nil
		many := []archive.Object{archive.NewObject("tool.bpf.o", tool, "x86_64", "arm64")}
		for _, n := range []string{"a.o", "b.o", "c.o", "d.o", "e.o"} {
			many = append(many, archive.NewObject(n, exec))
		}
		for _, tt := range []struct {
			name, arch string
			made       []archive.Object
			object     []byte
			status     readers.Status
			want       string
		}{
			{"same", "x86_64", many, exec, readers.OK, ""},
			{"its machine", "aarch64", many, tool, readers.OK, ""},
			{"any machine", "", many, tool, readers.OK, ""},
			{"other machine", "s390x", many, tool, readers.NotCovered, "the archive's object is for other machines"},
			{"other object", "x86_64", many, shapes, readers.NotCovered, "archive was made for a.o (sha256 "},
			{"six objects", "x86_64", many, shapes, readers.NotCovered, ", 2 more, not for the object: its relocations differ"},
			{"no objects", "x86_64", nil, shapes, readers.NotCovered, "archive was made for unknown objects, not for the object: "},
			{"no fingerprints", "x86_64", []archive.Object{old}, exec, readers.NotCovered, "the archive has no fingerprints"},
			{"no object", "x86_64", many, []byte("x"), readers.NotCovered, "it is not a BPF object"},
			{"no relocations", "x86_64", many, bpfObject(t, "norelo.bpfel.o"), readers.OK, ""},
		} {
			openFor(t, c, tt.made...)
			if status, text := c.Covers(t, tt.object, tt.arch); status != tt.status || !strings.Contains(text, tt.want) {
				t.Errorf("%s: %d %q, want %d %q", tt.name, status, text, tt.status, tt.want)
			}
		}
	})
}

// TestReadersCoversDamage changes bytes of objects. Where Go reads the fingerprint, C computes the same.
func TestReadersCoversDamage(t *testing.T) {
	slow.Skip(t)
	readers.Each(t, readers.Compiled, func(t *testing.T, c *readers.Reader) {
		random := rand.New(rand.NewPCG(3, 4))
		read, refused := 0, 0
		for _, name := range testObjects(t) {
			data := bpfObject(t, name)
			f, err := elf.NewFile(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			for _, section := range []string{".BTF", ".BTF.ext", ""} {
				from, size := uint64(0), uint64(len(data))
				if s := f.Section(section); s != nil && section != "" {
					from, size = s.Offset, s.Size
				}
				bad := bytes.Clone(data)
				bad[from+random.Uint64N(size)] ^= 1 << random.UintN(8)
				if random.UintN(20) == 0 {
					bad = bad[:random.UintN(uint(len(bad)))]
				}
				o := archive.NewObject(name, bad)
				if len(o.Fingerprint) == 0 {
					c.Covers(t, bad, "") // must not crash
					refused++
					continue
				}
				if !btfa.NoRelocations(o.Fingerprint) {
					read++
				}
				openFor(t, c, o)
				if status, text := c.Covers(t, bad, ""); status != readers.OK {
					t.Errorf("%s: Go reads fingerprint %x, the reader says %q", name, o.Fingerprint, text)
				}
			}
		}
		t.Logf("%d damaged objects have the same fingerprint in Go and C; Go refuses %d more", read, refused)
	})
}

// TestReadersFindObject looks up types for an object: an archive that was made for another one is an error.
func TestReadersFindObject(t *testing.T) {
	readers.Each(t, readers.Compiled, func(t *testing.T, c *readers.Reader) {
		exec := bpfObject(t, "execsnoop.bpfel.o")
		k := testminimized.Kernels(t)[0]
		k.Key = mustKey(t, "debian/12/x86_64/6.1.0-9-amd64")
		var b bytes.Buffer
		info := archive.Info{Objects: []archive.Object{archive.NewObject("exec.bpf.o", exec)}}
		if err := archive.Write(t.Context(), &b, info, []archive.Kernel{k}); err != nil {
			t.Fatal(err)
		}
		c.Open(t, b.Bytes())
		opts := archive.FindOptions{Host: kernel.HostOptions{Release: "6.1.0-9-amd64", Arch: "x86_64"}, Object: exec}
		if got := c.Find(t, opts); got.Status != readers.OK || !bytes.Equal(got.BTF, k.BTF) {
			t.Errorf("its own object: %d %s", got.Status, got.Error)
		}
		opts.Object = bpfObject(t, "shapes.bpfel.o")
		got := c.Find(t, opts)
		if got.Status != readers.NotCovered || len(got.BTF) > 0 || !strings.HasPrefix(got.Error, "archive was made for exec.bpf.o (sha256 ") {
			t.Errorf("another object: %d %q", got.Status, got.Error)
		}
	})
}
