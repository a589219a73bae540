// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkRead reads the same kernel from each kind of source, and with `xz -dc` alone for
// comparison.
func BenchmarkRead(b *testing.B) {
	_, got, errs := readAll(b, Options{}, filepath.Join(testdata, "debian/12/x86_64"))
	if len(got) == 0 {
		b.Fatal(errs)
	}
	raw, dir := got[0].btf, b.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			b.Fatal(err)
		}
		return path
	}
	tarred := tarOf(member{"x.btf", raw})
	txz := write("tar.xz", compress("xz", tarred))
	for _, bb := range []struct {
		name, path string
	}{
		{"raw", write("btf", raw)},
		{"elf", write("elf", vmlinux(raw))},
		{"zst", write("zst", compress("zst", raw))},
		{"gz", write("gz", compress("gz", raw))},
		{"tar.xz", txz},
	} {
		b.Run(bb.name, func(b *testing.B) {
			c, err := Open(context.Background(), []string{bb.path}, Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if err := c.Files[0].Read(context.Background(), func(*Kernel) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("tar.xz/xz alone", func(b *testing.B) {
		if _, err := exec.LookPath("xz"); err != nil {
			b.Skip("needs the xz program")
		}
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			if err := exec.Command("xz", "-dc", txz).Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
