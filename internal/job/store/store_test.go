// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

var background = context.Background()

func blob(name string) []byte {
	b := btf.NewBuilder(binary.LittleEndian)
	b.Type(name, btf.KindStruct, false, 0, 0)
	return b.Bytes()
}

// module returns split BTF with a name and without types.
var module = []byte("\x9f\xeb\x01\x00\x18\x00\x00\x00" + strings.Repeat("\x00", 12) + "\x02\x00\x00\x00m\x00")

func write(t *testing.T, dir string, files map[string][]byte) string {
	t.Helper()
	for name, data := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func config(t *testing.T, jobs int, sources ...string) walk.Config {
	t.Helper()
	return named(t, "", jobs, sources...)
}

// named is config with a value of --as.
func named(t *testing.T, as string, jobs int, sources ...string) walk.Config {
	t.Helper()
	opts := corpus.Options{Extras: true}
	if as != "" {
		n, err := corpus.ParseNaming(as)
		if err != nil {
			t.Fatal(err)
		}
		opts.As = append(opts.As, n)
	}
	c, err := corpus.Open(background, sources, opts)
	if err != nil {
		t.Fatal(err)
	}
	return walk.Config{Corpus: c, Jobs: jobs}
}

func imported(t *testing.T, jobs int, source, dir string) *Result {
	t.Helper()
	res, err := Import(background, config(t, jobs, source), dir)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// read returns all files below dir.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		files[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return files
}

// kernels returns, by key, the BTF of each kernel and, by key and name, that of its modules.
func kernels(t *testing.T, source string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	_, err := walk.Kernels(background, config(t, 1, source), func() int { return 0 }, func(_ int, _ walk.Rank, k *corpus.Kernel) error {
		all[k.Name] = string(k.BTF)
		for _, m := range k.Modules {
			all[k.Name+" "+m.Name] = string(m.BTF)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func names(files map[string]string) map[string]bool {
	set := make(map[string]bool)
	for n := range files {
		set[n] = true
	}
	return set
}

func TestImport(t *testing.T) {
	src := write(t, t.TempDir(), map[string][]byte{
		"debian/12/x86_64/6.1.btf":        blob("a"),
		"debian/12/x86_64/6.1/nf_nat.btf": module,
		"debian/12/x86_64/6.1/kvm.btf":    module,
		"arch/x86_64/6.8.1-arch1.btf":     blob("rolling"),
		"fedora/40/arm64/6.8.btf.failed":  nil,
		"fedora/40/arm64/6.8.btf":         nil,
		"unknown.btf":                     blob("c"),
	})
	out := filepath.Join(t.TempDir(), "new", "out")
	res := imported(t, 2, src, out)
	if res.Kernels != 2 || res.WithModules != 1 || res.Written != 3 || res.Kept != 0 || res.Bytes == 0 {
		t.Errorf("%+v", res)
	}
	var skipped []string
	for _, s := range res.Skipped {
		rel, _ := filepath.Rel(src, s.Path)
		skipped = append(skipped, rel)
	}
	if d := cmp.Diff([]string{"fedora/40/arm64/6.8.btf", "unknown.btf"}, skipped); d != "" {
		t.Error(d)
	}
	files := read(t, out)
	if d := cmp.Diff(map[string]bool{
		"debian/12/x86_64/6.1.btf.zst":                 true,
		"modules/debian/12/x86_64/6.1.modules.tar.zst": true,
		"arch/x86_64/6.8.1-arch1.btf.zst":              true,
	}, names(files)); d != "" {
		t.Error(d)
	}
	want := kernels(t, src)
	delete(want, filepath.Join(src, "unknown.btf"))
	if d := cmp.Diff(want, kernels(t, out)); d != "" {
		t.Errorf("read back (-want +got):\n%s", d)
	}

	if again := imported(t, 2, src, out); again.Written != 0 || again.Kept != 3 || again.Bytes != 0 {
		t.Errorf("again: %+v", again)
	}
	// A damaged file is replaced.
	damaged := filepath.Join(out, "debian/12/x86_64/6.1.btf.zst")
	if err := os.WriteFile(damaged, []byte(files["debian/12/x86_64/6.1.btf.zst"][:30]), 0o666); err != nil {
		t.Fatal(err)
	}
	if again := imported(t, 1, src, out); again.Written != 1 || again.Kept != 2 {
		t.Errorf("after damage: %+v", again)
	}
	if d := cmp.Diff(files, read(t, out)); d != "" {
		t.Error(d)
	}
	// Importing a tree into itself changes nothing.
	copied := filepath.Join(t.TempDir(), "copy")
	imported(t, 1, out, copied)
	if d := cmp.Diff(files, read(t, copied)); d != "" {
		t.Error(d)
	}
}

// TestImportReal imports a real kernel over the file of the test data, which has another compression level and is kept.
func TestImportReal(t *testing.T) {
	const name = "debian/13/s390x/6.12.107+deb13-s390x.btf.zst"
	src := testinput.Path(t, "testdata", "vmlinux", filepath.FromSlash(name))
	want, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	out := write(t, t.TempDir(), map[string][]byte{name: want})
	if res := imported(t, 1, src, out); res.Kept != 1 || res.Written != 0 || len(res.Skipped) > 0 {
		t.Errorf("%+v", res)
	}
	fresh := t.TempDir()
	if res := imported(t, 1, src, fresh); res.Kept != 0 || res.Written != 1 || res.Bytes > int64(len(want))*5/4 {
		t.Errorf("%+v, the test data has %d bytes", res, len(want))
	}
	if kernels(t, src)["debian/13/s390x/6.12.107+deb13-s390x"] != kernels(t, fresh)["debian/13/s390x/6.12.107+deb13-s390x"] {
		t.Error("read back is another BTF")
	}
}

func TestSameKey(t *testing.T) {
	// The first path wins, with its modules.
	src := write(t, t.TempDir(), map[string][]byte{
		"a/debian/12/amd64/6.1.btf":         blob("first"),
		"b/debian/12/x86_64/6.1.btf":        blob("second"),
		"b/debian/12/x86_64/6.1/nf_nat.btf": module,
		"c/debian/12/x86_64/6.1.btf":        blob("first"),
	})
	for _, run := range []func(dir string) (*Result, error){
		func(dir string) (*Result, error) { return Import(background, config(t, 3, src), dir) },
		func(dir string) (*Result, error) { return Extract(background, config(t, 3, src), dir) },
	} {
		var want map[string]string
		for range 20 {
			dir := t.TempDir()
			res, err := run(dir)
			if err != nil {
				t.Fatal(err)
			}
			got := read(t, dir)
			if want == nil {
				want = got
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatal(d)
			}
			if k := kernels(t, dir); len(k) != 1+res.WithModules || k["debian/12/x86_64/6.1"] != string(blob("first")) {
				t.Errorf("kernels: %v", k)
			}
			if len(res.Skipped) != 2 || !strings.HasSuffix(res.Skipped[0].Path, "b/debian/12/x86_64/6.1.btf") || !errors.Is(res.Skipped[0], corpus.ErrTaken) ||
				!strings.HasSuffix(res.Skipped[1].Path, "c/debian/12/x86_64/6.1.btf") || !errors.Is(res.Skipped[1], corpus.ErrAgain) || res.Kernels != 1 || res.Written != len(want) || res.Kept != 0 {
				t.Errorf("%+v, files %v", res, names(want))
			}
		}
	}
}

func TestAs(t *testing.T) {
	src := write(t, t.TempDir(), map[string][]byte{"one.btf": blob("a")})
	key := kernel.Key{ID: "debian", VersionID: "12", Arch: "x86_64", Release: "6.1"}
	out := t.TempDir()
	res, err := Import(background, named(t, "debian/12/x86_64/6.1", 1, src), out)
	if err != nil || len(res.Skipped) > 0 || kernels(t, out)[key.String()] != string(blob("a")) {
		t.Errorf("%+v, %v: %v", res, err, kernels(t, out))
	}
	// Paths without a level for the version are only understood for known distributions.
	out = filepath.Join(t.TempDir(), "none")
	res, err = Import(background, named(t, "mylinux/-/x86_64/6.1", 1, src), out)
	if err != nil || len(res.Skipped) != 1 || !strings.Contains(res.Skipped[0].Reason(), "would not be read back as mylinux/-/x86_64/6.1") {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestExtract(t *testing.T) {
	files := map[string][]byte{
		"debian/12/x86_64/6.1.btf":        blob("a"),
		"debian/12/x86_64/6.1/nf_nat.btf": module,
		"fedora/40/arm64/6.8.btf":         blob("b"),
		"some.btf":                        blob("c"),
		"other/vmlinux":                   blob("d"),
	}
	src := write(t, t.TempDir(), files)
	out := t.TempDir()
	for n := range 2 {
		res, err := Extract(background, config(t, 2, src), out)
		if err != nil || res.Kernels != 4 || res.WithModules != 1 || res.Written != 5-5*n || res.Kept != 5*n || len(res.Skipped) > 0 {
			t.Errorf("%+v, %v", res, err)
		}
	}
	want := make(map[string]string)
	for name, data := range files {
		want[strings.TrimPrefix(strings.TrimSuffix(name, ".btf")+".btf", "other/")] = string(data)
	}
	if d := cmp.Diff(want, read(t, out)); d != "" {
		t.Error(d)
	}
}

func TestOne(t *testing.T) {
	src := write(t, t.TempDir(), map[string][]byte{"a.btf": blob("a"), "b.btf": nil})
	got, skipped, err := One(background, config(t, 4, src))
	if err != nil || string(got.BTF) != string(blob("a")) || len(skipped) != 1 {
		t.Errorf("%v, %v, %v", got, skipped, err)
	}
	write(t, src, map[string][]byte{"b.btf": blob("b")})
	if _, _, err := One(background, config(t, 4, src)); !errors.Is(err, ErrSeveral) {
		t.Error(err)
	}
	write(t, src, map[string][]byte{"b.btf": nil, "a.btf": blob("a")[:30]})
	if _, _, err := One(background, config(t, 4, src)); err == nil || !strings.Contains(err.Error(), "a.btf: btf: truncated") {
		t.Error(err)
	}
}

// TestVerified reads BTF whose SHA-256 in the file is wrong.
func TestVerified(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.btfc")
	data := blob("a")
	if _, err := Pack(background, config(t, 1, write(t, t.TempDir(), map[string][]byte{"d/1/x86_64/6.1.btf": data})), path); err != nil {
		t.Fatal(err)
	}
	testinput.WrongSum(t, path, sha256.Sum256(data))

	const want = "x.btfc!d/1/x86_64/6.1: btfc: its SHA-256 is not the one in the index"
	if _, _, err := One(background, config(t, 1, path)); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	good := write(t, t.TempDir(), map[string][]byte{"d/1/x86_64/6.2.btf": blob("b")})
	for name, to := range map[string]func(walk.Config) ([]*corpus.Error, error){
		"Extract": func(cfg walk.Config) ([]*corpus.Error, error) {
			res, err := Extract(background, cfg, t.TempDir())
			return res.Skipped, err
		},
		"Import": func(cfg walk.Config) ([]*corpus.Error, error) {
			res, err := Import(background, cfg, t.TempDir())
			return res.Skipped, err
		},
		"Pack": func(cfg walk.Config) ([]*corpus.Error, error) {
			res, err := Pack(background, cfg, filepath.Join(t.TempDir(), "y.btfc"))
			return res.Skipped, err
		},
	} {
		skipped, err := to(config(t, 1, path, good))
		if err != nil || len(skipped) != 1 || !strings.HasSuffix(skipped[0].Error(), want) {
			t.Errorf("%s: %v, %v; want %s", name, skipped, err, want)
		}
	}
}

func openTree(t *testing.T, ctx context.Context, dir string) *tree {
	t.Helper()
	tr, err := newTree(ctx, dir, new(corpus.Corpus))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestStopped checks that a cancelled run leaves no incomplete files.
func TestStopped(t *testing.T) {
	src := write(t, t.TempDir(), map[string][]byte{"debian/12/x86_64/6.1.btf": blob("a")})
	ctx, cancel := context.WithCancel(background)
	cancel()
	out := t.TempDir()
	if _, err := Import(ctx, config(t, 1, src), out); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w := newCompressor()
	stopped, tr := openTree(t, ctx, out), openTree(t, background, out)
	for _, old := range []bool{false, true} {
		if old {
			write(t, out, map[string][]byte{"x.zst": []byte("old")})
		}
		before := read(t, out)
		if _, err := w.put(stopped, "x.zst", raw(make([]byte, 3*chunk))); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if d := cmp.Diff(before, read(t, out)); d != "" {
			t.Error(d)
		}
	}
	// The worker still works.
	if n, err := w.put(tr, "x.zst", raw(blob("a"))); n == 0 || err != nil {
		t.Error(n, err)
	}
	if n, err := w.put(tr, "x.zst", raw(blob("a"))); n != 0 || err != nil {
		t.Error(n, err)
	}
	if n, err := w.put(tr, "x.zst", raw(blob("a")[:10])); n == 0 || err != nil {
		t.Error("a longer file counts as the same", n, err)
	}
	if err := errors.Join(stopped.out.Close(), tr.out.Close()); err != nil {
		t.Error(err)
	}
	if l, err := os.ReadDir(out); len(l) != 1 || err != nil {
		t.Errorf("left behind: %v, %v", l, err)
	}
}

// TestReplaced checks that an earlier kernel of the corpus replaces a later one that was written first, with all its files.
func TestReplaced(t *testing.T) {
	out := t.TempDir()
	tr := openTree(t, background, out)
	put := func(rank int, name string, files ...string) {
		t.Helper()
		var list []file
		for _, f := range files {
			list = append(list, file{f, raw([]byte(name))})
		}
		k := &corpus.Kernel{Path: name, BTF: []byte(name), Modules: make([]core.Module, len(files)-1)}
		if err := tr.kernel(new(worker), "k", walk.Rank{File: rank}, k, list); err != nil {
			t.Fatal(err)
		}
	}
	put(5, "five", "k.btf", "k/a.btf", "k/b.btf")
	put(7, "seven", "k.btf", "k/c.btf")
	put(3, "three", "k.btf", "k/b.btf")
	put(4, "three", "k.btf")
	if err := tr.out.Close(); err != nil {
		t.Error(err)
	}
	if d := cmp.Diff(map[string]string{"k.btf": "three", "k/b.btf": "three"}, read(t, out)); d != "" {
		t.Error(d)
	}
	res := tr.result(nil)
	want := &Result{Kernels: 1, Contents: Contents{WithModules: 1}, Written: 2, Bytes: 10, Skipped: []*corpus.Error{
		{Path: "five", Err: errors.New("another kernel is k: three")}, {Path: "seven", Err: errors.New("another kernel is k: three")},
		{Path: "three", Err: errors.New("is k again: three")},
	}}
	if d := cmp.Diff(want, res, cmp.Comparer(func(a, b *corpus.Error) bool { return a.Compare(b) == 0 })); d != "" {
		t.Error(d)
	}
}

// TestImportExtras imports configurations and symbols, and reads them back.
func TestImportExtras(t *testing.T) {
	const settings, symbols = "CONFIG_BPF=y\nCONFIG_HZ=250\n", "t _stext\nt vfs_read\nd jiffies\n"
	src := write(t, t.TempDir(), map[string][]byte{
		"debian/12/x86_64/6.1.btf":      blob("a"),
		"debian/12/x86_64/6.1.config":   []byte("# CONFIG_X is not set\n" + settings),
		"debian/12/x86_64/6.1.kallsyms": []byte(symbols),
		"debian/12/x86_64/6.2.btf":      blob("b"),
	})
	with := func(source string) walk.Config {
		c, err := corpus.Open(background, []string{source}, corpus.Options{Extras: true})
		if err != nil {
			t.Fatal(err)
		}
		return walk.Config{Corpus: c, Jobs: 1}
	}
	packed := filepath.Join(t.TempDir(), "x.btfc")
	res, err := Pack(background, with(src), packed)
	if err != nil || res.Added != 2 || res.WithConfig != 1 || res.WithSymbols != 1 || len(res.Skipped) > 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	out, copied, unpacked := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "unpacked")
	for _, step := range [][2]string{{src, out}, {out, copied}, {packed, unpacked}} {
		res, err := Import(background, with(step[0]), step[1])
		if err != nil {
			t.Fatal(err)
		}
		if res.Kernels != 2 || res.WithConfig != 1 || res.WithSymbols != 1 || res.Written != 4 || len(res.Skipped) != 0 {
			t.Errorf("%+v", res)
		}
	}
	for _, dir := range []string{copied, unpacked} {
		if d := cmp.Diff(read(t, out), read(t, dir)); d != "" {
			t.Error(d)
		}
	}
	if d := cmp.Diff(map[string]bool{
		"debian/12/x86_64/6.1.btf.zst": true, "debian/12/x86_64/6.1.config.zst": true, "debian/12/x86_64/6.1.kallsyms.zst": true,
		"debian/12/x86_64/6.2.btf.zst": true,
	}, names(read(t, out))); d != "" {
		t.Error(d)
	}
	cfg := with(copied)
	if err := cfg.Corpus.Files[0].Read(background, func(k *corpus.Kernel) error {
		if string(k.Config) != settings || string(k.Symbols) != symbols {
			t.Errorf("%q, %q", k.Config, k.Symbols)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
