package minimize_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/embedded"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// objectFile is an object in a file of its own.
type objectFile struct {
	path string
	obj  *relolog.Object
}

// objectFiles returns the objects of testdata/bpf that have relocations and,
// if BTFGEN_DEBIAN names a directory of unpacked packages, those embedded in
// them.
func objectFiles(tb testing.TB) []objectFile {
	tb.Helper()
	paths, _ := filepath.Glob("../../testdata/bpf/*.o")
	if dir := os.Getenv("BTFGEN_DEBIAN"); dir != "" {
		filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				paths = append(paths, p)
			}
			return err
		})
	}
	dir := tb.TempDir()
	var out []objectFile
	for _, p := range paths {
		found, err := embedded.ReadFile(p, 0)
		if err != nil {
			continue // not an object: packages hold other files too
		}
		for _, f := range found {
			o, err := relolog.ParseObject(strings.TrimSuffix(filepath.Base(p)+"!"+f.Name, "!"), f.Data)
			if err != nil {
				tb.Fatal(err)
			}
			if o.Empty() != "" {
				continue
			}
			file := objectFile{filepath.Join(dir, fmt.Sprintf("%d.o", len(out))), o}
			if err := os.WriteFile(file.path, f.Data, 0o644); err != nil {
				tb.Fatal(err)
			}
			out = append(out, file)
		}
	}
	if len(out) == 0 {
		tb.Fatal("no object has relocations")
	}
	return out
}

func objects(tb testing.TB) []*relolog.Object {
	tb.Helper()
	var out []*relolog.Object
	for _, f := range objectFiles(tb) {
		out = append(out, f.obj)
	}
	return out
}

// sets returns the relocations of objects by byte order.
func sets(tb testing.TB, objs []*relolog.Object) map[string]*relolog.Set {
	tb.Helper()
	by := make(map[string][]*relolog.Object)
	for _, o := range objs {
		by[o.Order().String()] = append(by[o.Order().String()], o)
	}
	out := make(map[string]*relolog.Set)
	for order, l := range by {
		s, err := relolog.NewSet(l...)
		if err != nil {
			tb.Fatal(err)
		}
		out[order] = s
	}
	return out
}

// eachKernel calls fn for each kernel of testdata/vmlinux and, if
// BTFGEN_CORPUS names a directory, of that corpus.
func eachKernel(tb testing.TB, fn func(name string, btf []byte)) {
	tb.Helper()
	sources := []string{"../../testdata/vmlinux"}
	if dir := os.Getenv("BTFGEN_CORPUS"); dir != "" {
		sources = append(sources, dir)
	}
	ctx := context.Background()
	c, err := corpus.Open(ctx, sources, corpus.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	var s corpus.Scratch
	for _, f := range c.Files {
		err := f.Read(ctx, &s, func(it *corpus.Item) error {
			fn(it.Name, it.BTF)
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}
