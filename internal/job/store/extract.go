// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Result describes what Extract did.
type Result struct {
	Kernels int `json:"kernels"` // kernels in the tree now
	Contents
	Written int   `json:"files_written"`
	Bytes   int64 `json:"bytes_written"`
	Kept    int   `json:"files_kept"` // because they had the right content

	// Skipped is what could not be read, and kernels that have no place in the tree.
	Skipped []*corpus.Error `json:"-"`
}

// Extract writes all kernels to a tree at dir, which it creates if necessary, as raw BTF: <ID>/<VERSION_ID>/<arch>/<release>.btf.
// Modules become <release>/<module>.btf beside it, configuration and symbols <release>.config and <release>.kallsyms, as
// far as the corpus was opened for them. A kernel without a complete key is named after its release or its source file.
func Extract(ctx context.Context, cfg walk.Config, dir string) (*Result, error) {
	c := cfg.Corpus
	t := &tree{owners: make(map[string]owner), inputs: make(map[string]bool)}
	if _, err := os.Stat(dir); err == nil {
		for _, p := range c.Paths() {
			t.inputs[output.Real(p)] = true
		}
	}
	var err error
	if t.dir, err = output.OpenDir(dir); err != nil {
		return nil, err
	}
	defer t.dir.Close()
	if l, err := output.ReadList(ctx, dir); err != nil {
		return nil, err
	} else if l != nil {
		return nil, fmt.Errorf("%s: holds minimized BTF, which its %s lists: name another directory", dir, output.ListName)
	}
	order := make([]int, len(c.Files))
	for i, f := range c.Files {
		order[i] = i
		if name := f.Key.FileName(); f.Key.Known() && output.CheckPath(name) == nil { // else the kernel is skipped
			if err := t.dir.Check(name); err != nil {
				return nil, err
			}
		}
	}
	skipped, err := walk.InOrder(ctx, cfg, order, func(_ *corpus.File, k *corpus.Kernel, turn func() error) error {
		if err := turn(); err != nil {
			return err
		}
		return t.add(ctx, k)
	})
	if err = errors.Join(err, t.dir.Close()); err != nil {
		return nil, err
	}
	t.Kernels = len(t.owners)
	t.Skipped = slices.Concat(t.Skipped, skipped, c.Skipped)
	slices.SortFunc(t.Skipped, (*corpus.Error).Compare)
	return &t.Result, nil
}

// tree is a directory to which kernels are extracted.
type tree struct {
	Result
	dir    *output.Dir
	owners map[string]owner // the kernels of the tree, by the names of their files
	inputs map[string]bool  // real paths of the files that are read, if the directory existed
}

// owner is a kernel of a tree.
type owner struct {
	path string
	sum  [sha256.Size]byte
}

// ErrInput is returned for a file that would replace an input.
var ErrInput = errors.New("which is an input")

// skip adds a kernel that has no place in the tree.
func (t *tree) skip(k *corpus.Kernel, err error) {
	t.Skipped = append(t.Skipped, &corpus.Error{Path: k.Path, Err: err})
}

// add writes the files of a kernel, unless an earlier one has its place. It skips the kernel if a file cannot have its name.
func (t *tree) add(ctx context.Context, k *corpus.Kernel) error {
	name := extractName(k)
	base := strings.TrimSuffix(name, kernel.FileSuffix)
	files := []output.File{{Name: name, Data: k.BTF}}
	for _, m := range k.Modules {
		files = append(files, output.File{Name: path.Join(base, m.Name+kernel.FileSuffix), Data: m.BTF})
	}
	if len(k.Config) > 0 {
		files = append(files, output.File{Name: base + naming.ConfigSuffix, Data: k.Config})
	}
	if len(k.Symbols) > 0 {
		files = append(files, output.File{Name: base + naming.SymbolsSuffix, Data: k.Symbols})
	}
	for _, f := range files {
		if err := output.CheckPath(f.Name); err != nil {
			t.skip(k, err)
			return nil
		}
	}
	me := owner{k.Path, sha256.Sum256(k.BTF)}
	if first, taken := t.owners[name]; taken {
		if k.Key.Known() {
			name = k.Name
		}
		t.skip(k, corpus.Second(name, first.path, first.sum == me.sum))
		return nil
	}
	t.owners[name] = me
	t.Contents.add(k)
	for _, f := range files {
		if err := t.put(k, f); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// put writes a file of a kernel, unless it has the right content already. It does not replace an input.
func (t *tree) put(k *corpus.Kernel, f output.File) error {
	at := t.dir.Path(f.Name)
	if fi, err := os.Stat(at); err == nil && fi.Size() == int64(len(f.Data)) {
		if old, err := os.ReadFile(at); err == nil && bytes.Equal(old, f.Data) {
			t.Kept++
			return nil
		}
	}
	if t.inputs[output.Real(at)] {
		t.skip(k, fmt.Errorf("would replace %s, %w", at, ErrInput))
		return nil
	}
	t.Written++
	t.Bytes += int64(len(f.Data))
	return t.dir.Put(f.Name, func(w io.Writer) error {
		_, err := w.Write(f.Data)
		return err
	})
}

// extractName returns the name of a kernel's file in a tree.
func extractName(k *corpus.Kernel) string {
	if k.Key.Known() || k.Key.Release != "" {
		return k.Key.FileName()
	}
	_, name, _ := strings.Cut(path.Base(k.Path), "!")
	if name == "" {
		name = path.Base(k.Path)
	}
	return strings.TrimSuffix(name, kernel.FileSuffix) + kernel.FileSuffix
}

// ErrSeveral is returned by One if there is more than one kernel.
var ErrSeveral = errors.New("more than one kernel")

// One returns the only kernel of a corpus, without modules, and what was skipped. It fails with ErrSeveral if there are more, and
// if there is none.
func One(ctx context.Context, cfg walk.Config) (one *corpus.Kernel, skipped []*corpus.Error, err error) {
	cfg.Jobs = 1
	skipped, err = walk.Kernels(ctx, cfg, func() struct{} { return struct{}{} },
		func(_ struct{}, _ int, k *corpus.Kernel) error {
			if one != nil {
				return fmt.Errorf("%w: %s and %s", ErrSeveral, one.Name, k.Name)
			}
			one = k.Clone()
			return nil
		})
	switch {
	case err != nil:
		return nil, nil, err
	case one != nil:
		return one, skipped, nil
	case len(skipped) > 0:
		return nil, skipped, fmt.Errorf("no kernel found: %w", skipped[0])
	}
	return nil, skipped, errors.New("no kernel selected")
}
