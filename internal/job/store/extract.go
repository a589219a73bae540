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

// ErrSeveral is returned by One if there is more than one kernel.
var ErrSeveral = errors.New("more than one kernel")

// Extract writes all kernels to a tree at dir, which it creates if necessary, as raw BTF: <ID>/<VERSION_ID>/<arch>/<release>.btf.
// Modules become <release>/<module>.btf beside it, configuration and symbols <release>.config and <release>.kallsyms, as
// far as the corpus was opened for them. A kernel without a complete key is named after its release or its source file.
func Extract(ctx context.Context, cfg walk.Config, dir string) (*Result, error) {
	t, err := newTree(ctx, dir, cfg.Corpus)
	if err != nil {
		return nil, err
	}
	defer t.out.Close()
	if err := t.check(cfg.Corpus, extractName); err != nil {
		return nil, err
	}
	skipped, err := walk.Kernels(ctx, cfg, func() *worker { return new(worker) },
		func(w *worker, r walk.Rank, k *corpus.Kernel) error {
			name := extractName(k)
			files := []file{{name, raw(k.BTF)}}
			base := strings.TrimSuffix(name, kernel.FileSuffix)
			for _, m := range k.Modules {
				files = append(files, file{path.Join(base, m.Name+kernel.FileSuffix), raw(m.BTF)})
			}
			files = append(files, extraFiles(base, "", &k.Extras)...)
			return t.kernel(w, identity(k.Key, name), r, k, files)
		})
	if err = errors.Join(err, t.out.Close()); err != nil {
		return nil, err
	}
	return t.result(skipped), nil
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

// One returns the only kernel of a corpus, without modules, and what was skipped. It fails with ErrSeveral if there are more, and
// if there is none.
func One(ctx context.Context, cfg walk.Config) (one *corpus.Kernel, skipped []*corpus.Error, err error) {
	cfg.Jobs = 1
	skipped, err = walk.Kernels(ctx, cfg, func() struct{} { return struct{}{} },
		func(_ struct{}, _ walk.Rank, k *corpus.Kernel) error {
			if one != nil {
				return fmt.Errorf("%w: %s and %s", ErrSeveral, one.Name, k.Name)
			}
			one = k.Keep()
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
