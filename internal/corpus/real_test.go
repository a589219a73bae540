// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/pkg/kernel"
)

const testdata = "../../testdata/vmlinux"

// realCorpus returns the directory of a large corpus, which is not part of the repository.
func realCorpus(t testing.TB) string {
	dir := os.Getenv("BTFGEN_CORPUS")
	if dir == "" {
		t.Skip("needs BTFGEN_CORPUS to name a directory with a corpus")
	}
	return dir
}

// hashes reads a corpus and returns a hash of each kernel's BTF and modules, by name.
func hashes(t testing.TB, opts Options, src string) (sums map[string][sha256.Size]byte, mods map[string]int) {
	t.Helper()
	c, err := Open(context.Background(), []string{src}, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Skipped {
		t.Errorf("skipped %s", s)
	}
	sums, mods = make(map[string][sha256.Size]byte), make(map[string]int)
	for _, f := range c.Files {
		err := f.Read(context.Background(), func(k *Kernel) error {
			h := sha256.New()
			h.Write(k.BTF)
			for _, m := range k.Modules {
				if split, err := sniff.IsSplit(m.BTF); err != nil || !split {
					t.Errorf("%s: split is %v, %v", m.Path, split, err)
				}
				h.Write(m.BTF)
			}
			if _, dup := sums[k.Name]; dup {
				t.Errorf("second %s", k.Name)
			}
			sums[k.Name], mods[k.Name] = [sha256.Size]byte(h.Sum(nil)), len(k.Modules)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	return sums, mods
}

func TestTestdata(t *testing.T) {
	sums, _ := hashes(t, Options{}, testdata)
	if len(sums) < 8 {
		t.Fatalf("%d kernels in %s", len(sums), testdata)
	}
	for name := range sums {
		if k, err := kernel.ParseKey(name); err != nil || !k.Known() {
			t.Errorf("%s: key %v, %v", name, k, err)
		}
	}
}

// The decoder gives the same bytes as the xz program on real files.
func TestCorpusDecodersAgree(t *testing.T) {
	slow.Nightly(t)
	dir := realCorpus(t)
	if _, err := exec.LookPath("xz"); err != nil {
		t.Skip("needs the xz program")
	}
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.Ext(path) != ".xz" {
			return err
		}
		n++
		want, err := exec.Command("xz", "-dc", path).Output()
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		r, err := decompress.Open(t.Context(), bufio.NewReader(f), -1, decompress.XZ, nil)
		if err != nil {
			return err
		}
		defer r.Close()
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v, want %d", path, len(got), err, len(want))
		}
		return nil
	})
	if err != nil || n < 20 {
		t.Errorf("%d files, %v", n, err)
	}
}

// Real trees have modules.
func TestCorpusModules(t *testing.T) {
	sums, mods := hashes(t, Options{}, realCorpus(t))
	if len(sums) < 20 {
		t.Fatalf("%d kernels", len(sums))
	}
	with := 0
	for name := range sums {
		if mods[name] > 0 {
			with++
		}
	}
	if with == 0 {
		t.Error("no kernel has modules")
	}
}

// Kernel packages of distributions give a kernel, with modules, whose release is that in the
// package's name, and whose BTF is what the corpus has for it.
func TestPackages(t *testing.T) {
	dir := os.Getenv("BTFGEN_PACKAGES")
	if dir == "" {
		t.Skip("needs BTFGEN_PACKAGES to name a directory with .deb or .rpm kernel packages")
	}
	var files []string
	for _, glob := range []string{"*.deb", "*.rpm"} {
		found, err := filepath.Glob(filepath.Join(dir, glob))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Fatalf("no packages in %s", dir)
	}
	known := make(map[string][]byte) // by release
	if dir := os.Getenv("BTFGEN_CORPUS"); dir != "" {
		_, all, _ := readAll(t, Options{Modules: selection.NoModules()}, dir)
		for _, k := range all {
			known[k.Key.Release] = k.btf
		}
	}
	for i, path := range files {
		c, got, errs := readAll(t, Options{}, path)
		if i == 0 {
			_, with, _ := readAll(t, Options{XZ: decompress.NewXZProgram(t.Context())}, path)
			if len(with) != len(got) || len(got) == 0 || !bytes.Equal(with[0].btf, got[0].btf) || !maps.Equal(with[0].mods, got[0].mods) {
				t.Errorf("%s: other kernels with the xz program: %d and %d", path, len(with), len(got))
			}
		}
		if strings.Contains(path, "armmp") { // Debian builds it without BTF
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), "image: no BTF in it; ") {
				t.Errorf("%s: %v", path, errs)
			}
			continue
		}
		if len(errs) > 0 || len(got) != 1 {
			t.Errorf("%s: %d kernels, %v", path, len(got), errs)
			continue
		}
		k := got[0]
		if rel := c.Files[0].Key.Release; k.Key.Release != rel || k.Key.Arch == "" || len(k.btf) < 1<<20 || k.mods["nf_conntrack"] == "" {
			t.Errorf("%s: %s, want release %s; %d bytes, %d modules", path, k.Key, rel, len(k.btf), len(k.mods))
		}
		btf, ok := known[k.Key.Release]
		if ok && !bytes.Equal(btf, k.btf) {
			t.Errorf("%s: BTF of %s is not that of the corpus", path, k.Key)
		}
		t.Logf("%s: %s, %d bytes, in the corpus: %v", filepath.Base(path), k.Key, len(k.btf), ok)
	}
}

// The running kernel is a source.
func TestSysfs(t *testing.T) {
	const dir = "/sys/kernel/btf"
	if _, err := os.Stat(dir + "/vmlinux"); err != nil {
		t.Skip("needs a running kernel with BTF")
	}
	for _, src := range []string{dir, dir + "/vmlinux"} {
		_, got, errs := readAll(t, Options{}, src)
		if len(errs) > 0 || len(got) != 1 {
			t.Fatalf("%s: %d kernels, %v", src, len(got), errs)
		}
		rel, err := os.ReadFile("/proc/sys/kernel/osrelease")
		if err != nil {
			t.Fatal(err)
		}
		k := got[0]
		if k.Key.Release != strings.TrimSpace(string(rel)) || kernel.CanonicalArch(k.Key.Arch) != kernel.CanonicalArch(runtime.GOARCH) {
			t.Errorf("%s: key %s", src, k.Key)
		}
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if src == dir && len(k.mods) != len(list)-1 {
			t.Errorf("%d modules of %d", len(k.mods), len(list)-1)
		}
	}
}

// TestReadAllocations checks that reading a second kernel allocates next to nothing.
func TestReadAllocations(t *testing.T) {
	slow.Skip(t)
	if raceflag.Enabled {
		t.Skip("skipped: the race detector allocates too")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // as AllocsPerRun does: each processor has idle decoders of its own
	dir := t.TempDir()
	files, err := filepath.Glob(testdata + "/debian/12/x86_64/*.btf.zst")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test kernel: %v", err)
	}
	var raw []byte
	_, got, errs := readAll(t, Options{}, files[0])
	if len(got) != 1 {
		t.Fatal(errs)
	}
	raw = got[0].btf
	for name, data := range map[string][]byte{
		"x.btf": raw, "x.tar": tarOf(member{"x.btf", raw}), "x.elf": vmlinux(raw), "x.gz": compress("gz", raw), "x.zst": compress("zst", raw),
		"x.tar.xz": compress("xz", tarOf(member{"x.btf", raw})),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := Open(context.Background(), []string{path}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		read := func() {
			if err := c.Files[0].Read(context.Background(), func(*Kernel) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.GC() // nothing is idle
		runtime.ReadMemStats(&before)
		read()
		runtime.ReadMemStats(&after)
		// A window and the kernel. Nothing but the header of BTF says how long a decompressed kernel is.
		if size := after.TotalAlloc - before.TotalAlloc; size > 2*limits.Believed+1<<20 {
			t.Errorf("%s: %d bytes allocated for the first kernel, which has %d", name, size, len(raw))
		}
		runtime.ReadMemStats(&before)
		n := testing.AllocsPerRun(5, read)
		runtime.ReadMemStats(&after)
		if size := (after.TotalAlloc - before.TotalAlloc) / 6; n > 150 || size > 256<<10 {
			t.Errorf("%s: %v allocations, %d bytes for a kernel of %d", name, n, size, len(raw))
		}
	}
}
