// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// ErrSeveral says that there is more than one kernel where one is expected.
var ErrSeveral = errors.New("more than one kernel")

// Import writes all kernels into the tree at dir, which is created if need be. Kernels without a known key are
// skipped.
func Import(ctx context.Context, cfg walk.Config, dir string) (*Result, error) {
	t := newTree(ctx, dir, cfg.Corpus)
	if err := t.check(cfg.Corpus, func(k *corpus.Kernel) string {
		return importName(k.Key)
	}); err != nil {
		return nil, err
	}
	skipped, err := walk.Kernels(ctx, cfg, func() *importer { return &importer{tree: t} },
		func(i *importer, r walk.Rank, k *corpus.Kernel) error { return i.kernel(r, k) })
	if err = errors.Join(err, t.out.Close()); err != nil {
		return nil, err
	}
	if err := t.readBack(); err != nil {
		return nil, err
	}
	return t.result(skipped), nil
}

// importer is one worker.
type importer struct {
	*tree
	worker *worker
}

func (i *importer) kernel(r walk.Rank, k *corpus.Kernel) (err error) {
	key := k.Key
	if !key.Known() {
		i.skip(k.Path, corpus.ErrNoKey)
		return nil
	}
	if i.worker == nil {
		if i.worker, err = newCompressor(); err != nil {
			return err
		}
	}
	btf := raw(k.BTF)
	btf.maker = k.Made.By
	files := []file{{importName(key), btf}}
	if len(k.Modules) > 0 {
		files = append(files, file{importModules(key), moduleTar(key.Release, k.Modules)})
	}
	files = append(files, extraFiles(strings.TrimSuffix(key.FileName(), kernel.FileSuffix), ".zst", &k.Extras)...)
	return i.tree.kernel(i.worker, identity(key, ""), r, k, len(k.Modules) > 0, files)
}

func importName(k kernel.Key) string { return k.FileName() + ".zst" }

// extraFiles are those that lie beside a kernel's file, which is called base.btf.
func extraFiles(base, suffix string, x *corpus.Extras) (files []file) {
	if len(x.Config) > 0 {
		files = append(files, file{base + corpus.ConfigSuffix + suffix, raw(x.Config)})
	}
	if len(x.Symbols) > 0 {
		files = append(files, file{base + corpus.SymbolsSuffix + suffix, raw(x.Symbols)})
	}
	return files
}

func importModules(k kernel.Key) string {
	return path.Join("modules", k.ID, k.VersionID, k.Arch, k.Release+".modules.tar.zst")
}

// readBack makes sure that the tree's paths are understood as the keys they were made of. A
// distribution without VERSION_ID that package corpus does not know is not.
func (t *tree) readBack() error {
	if len(t.places) == 0 {
		return nil
	}
	c, err := corpus.Open(t.ctx, []string{t.dir}, corpus.Options{})
	if err != nil {
		return err
	}
	ids := make(map[string]string)
	for id, p := range t.places {
		ids[p.name] = id
	}
	var s corpus.Scratch
	for _, f := range c.Files {
		rel, err := filepath.Rel(t.dir, f.Path)
		if err != nil {
			return err
		}
		id := ids[filepath.ToSlash(rel)]
		if id == "" {
			continue // was there already
		}
		got := identity(f.Key, "")
		if got == "" { // the content may tell
			err = f.Read(t.ctx, &s, func(k *corpus.Kernel) error {
				got = identity(k.Key, k.Name)
				return nil
			})
		}
		switch {
		case t.ctx.Err() != nil:
			return t.ctx.Err()
		case err != nil:
			t.skip(f.Path, fmt.Errorf("cannot be read back: %w", err))
		case got != id:
			t.skip(f.Path, fmt.Errorf("would be read back as %s, not %s (--as with a VERSION_ID helps)", got, id))
		}
	}
	return nil
}
