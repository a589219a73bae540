// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/pahole"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// touch notes that packages are used now. The folder is locked, so that prunePackages of cmd/btfgen sees it.
func (f *fetcher) touch(paths []string) {
	if f.Touch {
		for _, path := range paths {
			os.Chtimes(path, time.Time{}, time.Now())
		}
	}
}

// keep moves the packages of a kernel to where they are kept.
func (f *fetcher) keep(k *Fetched) error {
	paths := f.files(k.unit)
	if err := os.MkdirAll(filepath.Dir(paths[0]), 0o777); err != nil {
		return err
	}
	for _, path := range paths {
		if err := os.Rename(filepath.Join(k.dir, filepath.Base(path)), path); err != nil {
			return err
		}
	}
	k.State, f.res.Kept = New, append(f.res.Kept, paths...)
	f.touch(paths)
	return nil
}

// fetchNaming gives all kernels in the folders of fetcher.work the key of their series, whatever the names in a package say.
const fetchNaming = "packages/{id}/{version}/{arch}/*/*={id}/{version}/{arch}"

// add adds downloaded kernels to the file or folder.
func (f *fetcher) add(ctx context.Context, dwarf *pahole.Encoder, batch []*Fetched) error {
	batch = slices.DeleteFunc(slices.Clone(batch), func(k *Fetched) bool { return k.State == Failed })
	place := f.prepare
	if f.Keep != "" {
		place = f.keep
	}
	for _, k := range batch {
		if err := place(k); err != nil {
			return err
		}
	}
	if f.Keep != "" || len(batch) == 0 {
		return nil
	}
	corp, err := f.openBatch(ctx, dwarf, batch)
	if err == nil {
		err = f.pack(ctx, corp, dwarf.NoModules, batch)
	}
	switch {
	case errors.Is(err, ErrEmpty):
		return nil // all are tried again
	case ctx.Err() != nil:
		return ctx.Err() // not a failure of the kernels
	case err != nil:
		for _, k := range batch {
			k.fail(err.Error(), true)
		}
	}
	if corp == nil {
		return nil
	}
	return err
}

// prepare renames the only package of a kernel. Its release then comes from the content, which is right where the package's version
// is another, as for SUSE.
func (f *fetcher) prepare(k *Fetched) error {
	if len(k.unit.Packages) > 1 {
		return nil
	}
	name := k.unit.Packages[0].File
	return os.Rename(filepath.Join(k.dir, name), filepath.Join(k.dir, "package"+filepath.Ext(name)))
}

// openBatch opens the packages of kernels as a corpus.
func (f *fetcher) openBatch(ctx context.Context, dwarf *pahole.Encoder, batch []*Fetched) (*corpus.Corpus, error) {
	as, err := naming.Parse(fetchNaming)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, k := range batch {
		dirs = append(dirs, k.dir)
	}
	return corpus.Open(ctx, dirs, corpus.Options{As: []*naming.Rule{as}, Modules: f.Options.Modules, Extras: true, DWARF: dwarf, XZ: f.xz})
}

// pack adds the kernels of a corpus to the file, with notes about their packages.
func (f *fetcher) pack(ctx context.Context, corp *corpus.Corpus, noModules bool, batch []*Fetched) error {
	res, err := Pack(ctx, walk.Config{Corpus: corp, Jobs: f.Jobs}, f.Path, func(res *Packed) (notes []btfc.Package) {
		for _, k := range batch {
			notes = append(notes, f.note(k, res)...)
		}
		return notes
	})
	if err == nil && noModules {
		for _, n := range res.Made {
			f.res.WithoutModules += n
		}
	}
	return err
}

// note sets the state of a kernel after its packages were read. It returns the note about the first package, unless the next run tries
// again.
func (f *fetcher) note(k *Fetched, res *Packed) []btfc.Package {
	below := filepath.ToSlash(k.dir) + "/"
	key, reason, later := kernel.Key{}, "", false
	for path, found := range res.Keys {
		if strings.HasPrefix(path, below) && (!key.Known() || found.Compare(key) < 0) { // the first, if a package has several
			key = found
		}
	}
	for _, e := range res.Skipped {
		part, ok := strings.CutPrefix(e.Path, below)
		switch {
		case !ok:
		case key.Known():
			e.Path = k.Package + "!" + part
			f.res.Skipped = append(f.res.Skipped, e)
		default:
			reason = cmp.Or(reason, e.Reason())
			later = later || errors.Is(e, syscall.ENOSPC)
		}
	}
	if key.Known() {
		k.State, k.Kernel = New, key.String()
		f.byKey[key.Canonical()] = true
	} else {
		reason = cmp.Or(reason, "no kernel found")
		k.fail(reason[:min(len(reason), 500)], later)
	}
	if later {
		return nil
	}
	p := k.unit.Packages[0]
	n := btfc.Package{Series: k.from.Series.String(), Name: p.Name, Version: p.Version, Kernel: key, Reason: k.Reason}
	if sum, err := hex.DecodeString(p.Sum); err == nil {
		copy(n.Sum[:], sum)
	}
	return []btfc.Package{n}
}

// prune removes kernels that no repository offers any more and that a selector matches.
func (f *fetcher) prune(ctx context.Context) error {
	if len(f.Prune) == 0 || len(f.gone) == 0 {
		return nil
	}
	opts := corpus.Options{Select: f.Prune}
	pruned := maps.Clone(f.gone)
	maps.DeleteFunc(pruned, func(k kernel.Key, _ bool) bool { return !opts.Selects(k) })
	if f.res.Pruned = len(pruned); f.res.Pruned == 0 {
		return nil
	}
	old := &packer{cfg: walk.Config{Corpus: new(corpus.Corpus), Jobs: f.Jobs}, path: f.Path, replaced: pruned}
	p, err := old.without(ctx)
	if err != nil {
		return err
	}
	res, err := p.pack(ctx, 0, nil)
	if err == nil {
		f.res.Skipped = append(f.res.Skipped, res.Skipped...)
	}
	return err
}
