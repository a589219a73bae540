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
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/selection"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/testing/slow"
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
		n, err := naming.Parse(as)
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
	_, err := walk.Kernels(background, config(t, 1, source), func() int { return 0 }, func(_ int, _ int, k *corpus.Kernel) error {
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

func TestPack(t *testing.T) {
	src := write(t, t.TempDir(), map[string][]byte{
		"debian/12/x86_64/6.1.btf":        blob("a"),
		"debian/12/x86_64/6.1/nf_nat.btf": module,
		"debian/12/x86_64/6.1/kvm.btf":    module,
		"arch/x86_64/6.8.1-arch1.btf":     blob("rolling"),
		"fedora/40/arm64/6.8.btf.failed":  nil,
		"fedora/40/arm64/6.8.btf":         nil,
		"unknown.btf":                     blob("c"),
	})
	out := filepath.Join(t.TempDir(), "x.btfc")
	res, err := Pack(background, config(t, 2, src), out, nil)
	if err != nil || res.Added != 2 || res.WithModules != 1 || res.Kept != 0 || res.Bytes == 0 {
		t.Errorf("%+v, %v", res, err)
	}
	var skipped []string
	for _, s := range res.Skipped {
		rel, _ := filepath.Rel(src, s.Path)
		skipped = append(skipped, rel)
	}
	if d := cmp.Diff([]string{"fedora/40/arm64/6.8.btf", "unknown.btf"}, skipped); d != "" {
		t.Error(d)
	}
	want := kernels(t, src)
	delete(want, filepath.Join(src, "unknown.btf"))
	if d := cmp.Diff(want, kernels(t, out)); d != "" {
		t.Errorf("read back (-want +got):\n%s", d)
	}
	if again, err := Pack(background, config(t, 2, src), out, nil); err != nil || again.Added != 0 || again.Kept != 2 || again.Bytes != 0 {
		t.Errorf("again: %+v, %v", again, err)
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
	var want map[string]string
	for range 20 {
		dir := t.TempDir()
		res, err := Extract(background, config(t, 3, src), dir)
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

func TestAs(t *testing.T) {
	src := write(t, t.TempDir(), map[string][]byte{"one.btf": blob("a")})
	for _, as := range []string{"debian/12/x86_64/6.1", "mylinux/-/x86_64/6.1"} {
		out := filepath.Join(t.TempDir(), "x.btfc")
		res, err := Pack(background, named(t, as, 1, src), out, nil)
		if err != nil || len(res.Skipped) > 0 || kernels(t, out)[as] != string(blob("a")) {
			t.Errorf("%+v, %v: %v", res, err, kernels(t, out))
		}
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
	if _, err := Pack(background, config(t, 1, write(t, t.TempDir(), map[string][]byte{"d/1/x86_64/6.1.btf": data})), path, nil); err != nil {
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
		"Pack": func(cfg walk.Config) ([]*corpus.Error, error) {
			res, err := Pack(background, cfg, filepath.Join(t.TempDir(), "y.btfc"), nil)
			return res.Skipped, err
		},
	} {
		skipped, err := to(config(t, 1, path, good))
		if err != nil || len(skipped) != 1 || !strings.HasSuffix(skipped[0].Error(), want) {
			t.Errorf("%s: %v, %v; want %s", name, skipped, err, want)
		}
	}
}

// TestStopped checks that a cancelled run writes nothing.
func TestStopped(t *testing.T) {
	src := write(t, t.TempDir(), map[string][]byte{"debian/12/x86_64/6.1.btf": blob("a")})
	ctx, cancel := context.WithCancel(background)
	cancel()
	out := t.TempDir()
	if _, err := Extract(ctx, config(t, 1, src), out); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if l, err := os.ReadDir(out); len(l) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", l, err)
	}
}

// TestExtras stores configurations and symbols, and reads them back.
func TestExtras(t *testing.T) {
	slow.Skip(t)
	const settings, symbols = "CONFIG_BPF=y\nCONFIG_HZ=250\n", "d jiffies\nt _stext\nt vfs_read\n" // in the order in which a .btfc has them
	src := write(t, t.TempDir(), map[string][]byte{
		"debian/12/x86_64/6.1.btf":      blob("a"),
		"debian/12/x86_64/6.1.config":   []byte("# CONFIG_X is not set\n" + settings),
		"debian/12/x86_64/6.1.kallsyms": []byte("t _stext\nt vfs_read\nd jiffies\n"),
		"debian/12/x86_64/6.2.btf":      blob("b"),
	})
	with := func(source string) walk.Config {
		c, err := corpus.Open(background, []string{source}, corpus.Options{Extras: true})
		if err != nil {
			t.Fatal(err)
		}
		return walk.Config{Corpus: c, Jobs: 1}
	}
	packed, copied, out := filepath.Join(t.TempDir(), "x.btfc"), filepath.Join(t.TempDir(), "y.btfc"), t.TempDir()
	for _, step := range [][2]string{{src, packed}, {packed, copied}} {
		res, err := Pack(background, with(step[0]), step[1], nil)
		if err != nil || res.Added != 2 || res.WithConfig != 1 || res.WithSymbols != 1 || len(res.Skipped) > 0 {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	res, err := Extract(background, with(copied), out)
	if err != nil || res.Kernels != 2 || res.WithConfig != 1 || res.WithSymbols != 1 || res.Written != 4 || len(res.Skipped) != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	want := map[string]string{
		"debian/12/x86_64/6.1.btf": string(blob("a")), "debian/12/x86_64/6.2.btf": string(blob("b")),
		"debian/12/x86_64/6.1.config": settings, "debian/12/x86_64/6.1.kallsyms": symbols,
	}
	if d := cmp.Diff(want, read(t, out)); d != "" {
		t.Error(d)
	}
	for _, source := range []string{copied, out} {
		if err := with(source).Corpus.Files[0].Read(background, func(k *corpus.Kernel) error {
			if string(k.Config) != settings || string(k.Symbols) != symbols {
				t.Errorf("%s: %q, %q", source, k.Config, k.Symbols)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// TestPrune removes kernels from a file. The others keep their configuration and symbols.
func TestPrune(t *testing.T) {
	src := write(t, t.TempDir(), map[string][]byte{
		"debian/12/x86_64/6.1.btf":      blob("a"),
		"debian/12/x86_64/6.1.config":   []byte("CONFIG_BPF=y\n"),
		"debian/12/x86_64/6.1.kallsyms": []byte("t _stext\nt vfs_read\nd jiffies\n"),
		"debian/12/x86_64/6.2.btf":      blob("b"),
	})
	path := filepath.Join(t.TempDir(), "x.btfc")
	if _, err := Pack(background, config(t, 1, src), path, nil); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"6.2", "6.1"} {
		f := &fetcher{
			FetchConfig: FetchConfig{Path: path, Jobs: 1, Prune: []selection.Selector{selector(t, "debian")}}, res: new(FetchResult),
			gone: map[kernel.Key]bool{{ID: "debian", VersionID: "12", Arch: "x86_64", Release: gone}: true},
		}
		if err := f.prune(background); err != nil || f.res.Pruned != 1 || len(f.res.Skipped) > 0 {
			t.Fatalf("%s: %+v, %v", gone, f.res, err)
		}
		in, file, _, err := openPacked(path)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		if gone == "6.1" {
			if n := len(file.Entries()); n != 0 {
				t.Errorf("%d kernels left", n)
			}
			break
		}
		if len(file.Entries()) != 1 {
			t.Fatalf("%d kernels left", len(file.Entries()))
		}
		if x, err := file.Extras(background, 0); err != nil || string(x.Config) != "CONFIG_BPF=y\n" || string(x.Symbols) != "d jiffies\nt _stext\nt vfs_read\n" {
			t.Errorf("%q, %q, %v", x.Config, x.Symbols, err)
		}
	}
}

func selector(t *testing.T, text string) selection.Selector {
	t.Helper()
	s, err := selection.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
