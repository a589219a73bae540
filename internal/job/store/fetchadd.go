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
	var dirs []string
	var ready []*Fetched
	for _, k := range batch {
		if k.State == Failed {
			continue
		}
		if f.Keep != "" {
			if err := f.keep(k); err != nil {
				return err
			}
			continue
		}
		ready, dirs = append(ready, k), append(dirs, k.dir)
		if len(k.unit.Packages) > 1 {
			continue
		}
		// The release then comes from the content, which is right where the package's version is another, as for SUSE.
		name := k.unit.Packages[0].File
		if err := os.Rename(filepath.Join(k.dir, name), filepath.Join(k.dir, "package"+filepath.Ext(name))); err != nil {
			return err
		}
	}
	if len(ready) == 0 {
		return nil
	}
	as, err := naming.Parse(fetchNaming)
	if err != nil {
		return err
	}
	corp, err := corpus.Open(ctx, dirs, corpus.Options{As: []*naming.Rule{as}, Modules: f.Options.Modules, Extras: true, DWARF: dwarf, XZ: f.xz})
	if err == nil {
		var res *Packed
		res, err = Pack(ctx, walk.Config{Corpus: corp, Jobs: f.Jobs}, f.Path, func(res *Packed) (notes []btfc.Package) {
			for _, k := range ready {
				notes = append(notes, f.note(k, res)...)
			}
			return notes
		})
		if errors.Is(err, ErrEmpty) {
			return nil // all are tried again
		}
		if err == nil && dwarf.NoModules {
			for _, n := range res.Made {
				f.res.WithoutModules += n
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err() // which is not a failure of the kernels
	}
	for _, k := range ready {
		if err != nil {
			k.fail(err.Error(), true)
		}
	}
	if corp == nil {
		return nil
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
