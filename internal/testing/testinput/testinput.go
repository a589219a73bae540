// SPDX-License-Identifier: Apache-2.0

// Package testinput finds the objects and kernels for tests: those of testdata, and more
// if the environment names them. [Large] builds an object. It is for tests and benchmarks
// only.
//
//	BTFGEN_CORPUS    a tree of kernel BTFs
//	BTFGEN_UNPACKED  a decompressed copy of it, which saves time
//	BTFGEN_DEBIAN    a directory of unpacked Debian packages with BPF objects
package testinput

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/internal/bpfobj/embedded"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/testing/slow"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Object is a BPF object and its file.
type Object struct {
	*core.Object
	Data []byte
}

// Path returns the path of a file of the repository.
func Path(tb testing.TB, elem ...string) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(append([]string{dir}, elem...)...)
		}
		up := filepath.Dir(dir)
		if up == dir {
			tb.Fatal("no go.mod above the test")
		}
		dir = up
	}
}

// Objects returns the distinct objects with relocations of testdata/bpf and of BTFGEN_DEBIAN. Except at night
// it is every fifth of Debian's, which resemble each other. The test fails if there are none.
func Objects(tb testing.TB) []Object {
	tb.Helper()
	own, err := filepath.Glob(filepath.Join(Path(tb, "testdata", "bpf"), "*.o"))
	if err != nil {
		tb.Fatal(err)
	}
	debian := debianFiles(tb)
	seen := make(map[string]bool)
	all := distinct(tb, own, seen, func(int) bool { return true })
	all = append(all, distinct(tb, debian, seen, func(i int) bool { return i%5 == 0 || slow.Night() })...)
	if len(all) == 0 {
		tb.Fatalf("none of %d files has BPF objects with relocations", len(own)+len(debian))
	}
	return all
}

// debianFiles returns the files below BTFGEN_DEBIAN.
func debianFiles(tb testing.TB) (paths []string) {
	tb.Helper()
	dir := os.Getenv("BTFGEN_DEBIAN")
	if dir == "" {
		return nil
	}
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			paths = append(paths, p)
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return paths
}

// distinct returns the objects with relocations in files, of those that were not seen before the ones whose numbers keep accepts.
func distinct(tb testing.TB, paths []string, seen map[string]bool, keep func(number int) bool) (all []Object) {
	tb.Helper()
	n := 0
	for _, p := range paths {
		found, err := embedded.ReadFile(p)
		if errors.Is(err, embedded.ErrNone) {
			continue
		}
		if err != nil {
			tb.Fatal(err)
		}
		for _, f := range found {
			if seen[string(f.Data)] {
				continue
			}
			seen[string(f.Data)] = true
			if n++; !keep(n - 1) {
				continue
			}
			o, err := core.ParseObject(strings.TrimSuffix(filepath.Base(p)+"!"+f.Name, "!"), f.Data)
			if err == nil && o.Empty() == nil {
				all = append(all, Object{o.ForMachines(), f.Data})
			}
		}
	}
	return all
}

// Named returns the object of testdata/bpf with this file name, for any machine.
func Named(tb testing.TB, name string) Object {
	tb.Helper()
	data, err := os.ReadFile(Path(tb, "testdata", "bpf", name))
	if err != nil {
		tb.Fatal(err)
	}
	o, err := core.ParseObject(name, data)
	if err != nil {
		tb.Fatal(err)
	}
	return Object{o.ForMachines(), data}
}

// copied is the decompressed copy of testdata/vmlinux.
var copied struct {
	wanted bool
	once   sync.Once
	dir    string
}

// Main is TestMain for packages whose tests read the kernels of testdata many times: [Vmlinux] returns a decompressed copy there.
func Main(m *testing.M) {
	copied.wanted = true
	code := m.Run()
	os.RemoveAll(copied.dir)
	os.Exit(code)
}

// Vmlinux returns the path of testdata/vmlinux, or with [Main] of its decompressed copy.
func Vmlinux(tb testing.TB) string {
	tb.Helper()
	dir := Path(tb, "testdata", "vmlinux")
	if !copied.wanted {
		return dir
	}
	copied.once.Do(func() {
		var err error
		if copied.dir, err = os.MkdirTemp("", "vmlinux"); err != nil {
			tb.Fatal(err)
		}
		for _, f := range open(tb, dir).Files {
			err := f.Read(context.Background(), func(k *corpus.Kernel) error {
				path := copied.dir + strings.TrimSuffix(strings.TrimPrefix(f.Path, dir), ".zst")
				return cmp.Or(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, k.BTF, 0o666))
			})
			if err != nil {
				tb.Fatal(err)
			}
		}
	})
	return copied.dir
}

// Corpus opens the kernels of testdata/vmlinux and of BTFGEN_CORPUS.
func Corpus(tb testing.TB) *corpus.Corpus {
	tb.Helper()
	sources := []string{Vmlinux(tb)}
	if dir := os.Getenv("BTFGEN_CORPUS"); dir != "" {
		sources = []string{dir} // it includes those of testdata
		if unpacked := os.Getenv("BTFGEN_UNPACKED"); unpacked != "" {
			sources = []string{unpacked}
		}
	}
	return open(tb, sources...)
}

func open(tb testing.TB, sources ...string) *corpus.Corpus {
	tb.Helper()
	c, err := corpus.Open(context.Background(), sources, corpus.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	for _, s := range c.Skipped {
		tb.Error(s)
	}
	return c
}

// Varied is Corpus with at most two kernels of a directory. Monthly builds hardly differ,
// and comparing each of them with other programs is slow.
func Varied(tb testing.TB) *corpus.Corpus {
	tb.Helper()
	c := Corpus(tb)
	all := c.Files
	dir := func(i int) string {
		if i < 0 || i >= len(all) {
			return ""
		}
		return path.Dir(all[i].Path)
	}
	c.Files = nil
	for i, f := range all {
		if dir(i-1) != dir(i) || dir(i+1) != dir(i) {
			c.Files = append(c.Files, f)
		}
	}
	return c
}

// Few is one kernel each of 64 bits, of 32 bits and of the other byte order. With BTFGEN_CORPUS it is a fourth of each machine's
// releases, and the last one. At night, and without BTFGEN_CORPUS with BTFGEN_SLOW=1, it is Varied.
func Few(tb testing.TB) *corpus.Corpus {
	tb.Helper()
	c := Varied(tb)
	if slow.Night() {
		return c
	}
	if os.Getenv("BTFGEN_CORPUS") != "" {
		releases := make(map[string][]*corpus.File) // keyed by machine
		for _, f := range c.Files {
			machine := path.Base(path.Dir(f.Path))
			releases[machine] = append(releases[machine], f)
		}
		chosen := make(map[*corpus.File]bool)
		for _, l := range releases {
			slices.SortStableFunc(l, func(a, b *corpus.File) int { return cmp.Compare(path.Base(a.Path), path.Base(b.Path)) })
			for i, f := range l {
				chosen[f] = i%4 == 0 || i+1 == len(l)
			}
		}
		c.Files = slices.DeleteFunc(c.Files, func(f *corpus.File) bool { return !chosen[f] })
		return c
	}
	if slow.Enabled() {
		return c
	}
	machines := []string{"/x86_64/", "/armhf/", "/s390x/"}
	c.Files = slices.DeleteFunc(c.Files, func(f *corpus.File) bool {
		i := slices.IndexFunc(machines, func(m string) bool { return strings.Contains(f.Path, m) })
		if i >= 0 {
			machines = slices.Delete(machines, i, i+1)
		}
		return i < 0
	})
	return c
}

// Add adds a kernel to a corpus in one file.
func Add(tb testing.TB, w *btfc.Writer, key kernel.Key, btf []byte, modules []btfc.Module) {
	tb.Helper()
	k, err := btfc.Prepare(btfc.Input{Key: key, BTF: btf, Modules: modules})
	if err != nil {
		tb.Fatal(err)
	}
	if added, err := w.Plan(tb.Context(), k); err != nil || !added {
		tb.Fatalf("%s: added %v, error %v", key, added, err)
	}
	if err := w.Make(tb.Context(), k); err != nil {
		tb.Fatal(err)
	}
}

// Packed returns a corpus in one file, from which generate reads only parts of the kernels.
func Packed(tb testing.TB, c *corpus.Corpus) *corpus.Corpus {
	tb.Helper()
	dir := tb.TempDir()
	w, err := btfc.NewWriter(nil, dir)
	if err != nil {
		tb.Fatal(err)
	}
	defer w.Discard()
	Each(tb, c, func(k *corpus.Kernel) {
		modules := make([]btfc.Module, len(k.Modules))
		for i, m := range k.Modules {
			modules[i] = btfc.Module{Name: m.Name, BTF: m.BTF}
		}
		Add(tb, w, k.Key, k.BTF, modules)
	})
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(dir, "kernels.btfc")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		tb.Fatal(err)
	}
	packed, err := corpus.Open(tb.Context(), []string{path}, corpus.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return packed
}

// NewKernel parses the BTF of a kernel.
func NewKernel(name string, vmlinux []byte, modules ...corpus.Module) (*core.Target, error) {
	k := new(core.Target)
	if err := k.Load(context.Background(), name, vmlinux); err != nil {
		return nil, err
	}
	for _, m := range modules {
		if err := k.Add(context.Background(), relo.Module{Name: m.Name, BTF: m.BTF}); err != nil {
			return nil, fmt.Errorf("%s: module %s: %w", name, m.Name, err)
		}
	}
	return k, nil
}

// Each calls fn for every kernel of the corpus, in order.
func Each(tb testing.TB, c *corpus.Corpus, fn func(*corpus.Kernel)) {
	tb.Helper()
	for _, f := range c.Files {
		err := f.Read(context.Background(), func(k *corpus.Kernel) error {
			fn(k)
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// Kernels returns the kernels whose name contains one of the given parts, in order of the
// corpus and in their own memory. The test fails if a part is not found.
func Kernels(tb testing.TB, parts ...string) []corpus.Kernel {
	tb.Helper()
	var out []corpus.Kernel
	found := make(map[string]bool)
	c := Corpus(tb)
	for _, f := range c.Files {
		i := slices.IndexFunc(parts, func(p string) bool { return strings.Contains(f.Path, p) })
		if i < 0 {
			continue
		}
		err := f.Read(context.Background(), func(k *corpus.Kernel) error {
			own := *k
			own.BTF, own.Modules = slices.Clone(k.BTF), slices.Clone(k.Modules)
			for i, m := range own.Modules {
				own.Modules[i].BTF = slices.Clone(m.BTF)
			}
			out = append(out, own)
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
		found[parts[i]] = true
	}
	for _, p := range parts {
		if !found[p] {
			tb.Fatalf("no kernel has %s in its path", p)
		}
	}
	return out
}

// WrongSum changes a SHA-256 in the index of the corpus file at path, and makes that of the index right.
func WrongSum(tb testing.TB, path string, sum btfc.Sum) {
	tb.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	const footer = 16 + sha256.Size + len("btfc.end")
	end := len(file) - footer
	start := end - int(binary.LittleEndian.Uint64(file[end:]))
	dec, err := zstd.NewReader(nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer dec.Close()
	index, err := dec.DecodeAll(file[start:end], nil)
	if err != nil {
		tb.Fatal(err)
	}
	at := bytes.Index(index, fmt.Appendf(nil, "%x", sum))
	if at < 0 {
		tb.Fatalf("%s: no sum %x", path, sum)
	}
	digit := byte('0')
	if index[at] == digit {
		digit = '1'
	}
	index[at] = digit
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		tb.Fatal(err)
	}
	frame := enc.EncodeAll(index, nil)
	out := append(file[:start:start], frame...)
	for _, n := range []int{len(frame), len(index)} {
		out = binary.LittleEndian.AppendUint64(out, uint64(n))
	}
	check := sha256.Sum256(frame)
	out = append(append(out, check[:]...), "btfc.end"...)
	if err := os.WriteFile(path, out, 0o644); err != nil {
		tb.Fatal(err)
	}
}
