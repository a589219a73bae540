// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Import writes all kernels to the compressed tree at dir, which it creates if necessary. It skips kernels without a complete key.
func Import(ctx context.Context, cfg walk.Config, dir string) (*Result, error) {
	t, err := newTree(ctx, dir, cfg.Corpus)
	if err != nil {
		return nil, err
	}
	defer t.out.Close()
	name := func(k *corpus.Kernel) string { return k.Key.FileName() + ".zst" }
	if err := t.check(cfg.Corpus, name); err != nil {
		return nil, err
	}
	skipped, err := walk.Kernels(ctx, cfg, newCompressor, func(w *worker, r walk.Rank, k *corpus.Kernel) error {
		key := k.Key
		if !key.Known() {
			t.skip(k.Path, corpus.ErrNoKey)
			return nil
		}
		btf := raw(k.BTF)
		btf.maker = k.Made.By
		files := []file{{name(k), btf}}
		if len(k.Modules) > 0 {
			archive := path.Join("modules", key.ID, key.VersionID, key.Arch, key.Release+".modules.tar.zst")
			files = append(files, file{archive, moduleTar(key.Release, k.Modules)})
		}
		files = append(files, extraFiles(strings.TrimSuffix(key.FileName(), kernel.FileSuffix), ".zst", &k.Extras)...)
		return t.kernel(w, identity(key, ""), r, k, files)
	})
	if err = errors.Join(err, t.out.Close()); err != nil {
		return nil, err
	}
	if err := t.readBack(); err != nil {
		return nil, err
	}
	return t.result(skipped), nil
}

// extraFiles returns the files that lie beside base.btf.
func extraFiles(base, suffix string, x *corpus.Extras) (files []file) {
	if len(x.Config) > 0 {
		files = append(files, file{base + corpus.ConfigSuffix + suffix, raw(x.Config)})
	}
	if len(x.Symbols) > 0 {
		files = append(files, file{base + corpus.SymbolsSuffix + suffix, raw(x.Symbols)})
	}
	return files
}

// readBack checks that package corpus derives the original keys from the tree's paths. It cannot if a distribution that it does
// not know has no VERSION_ID.
func (t *tree) readBack() error {
	if len(t.places) == 0 {
		return nil
	}
	c, err := corpus.Open(t.ctx, []string{t.dir}, corpus.Options{})
	if err != nil {
		return err
	}
	have := make(map[string]bool)
	for _, f := range c.Files {
		have[identity(f.Key, "")] = true
	}
	for id, p := range t.places {
		if !have[id] {
			t.skip(t.out.Path(p.name), fmt.Errorf("would not be read back as %s (--as with a VERSION_ID helps)", id))
		}
	}
	return nil
}
