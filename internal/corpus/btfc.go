// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/corpus/find"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/corpus/sniff"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// btfcFiles removes corpora in one file from the files found, and returns the kernels in them that keep accepts. A damaged file is skipped, unless
// the user named it.
func btfcFiles(found *find.Found, keep func(kernel.Key) bool) (out []*File, err error) {
	found.Files = slices.DeleteFunc(found.Files, func(f *find.File) bool {
		if f.Kind != sniff.BTFC || err != nil {
			return false
		}
		more, failed := btfcKernels(f, keep)
		switch {
		case failed == nil:
			out = append(out, more...)
		case f.Source:
			err = failed
		default:
			found.Skipped = append(found.Skipped, skip.Errors(failed)...)
		}
		return true
	})
	return out, err
}

// btfcKernels returns a File for each kernel in a corpus in one file that keep accepts.
func btfcKernels(f *find.File, keep func(kernel.Key) bool) (out []*File, err error) {
	r, err := os.Open(f.Path) // stays open
	if err != nil {
		return nil, skip.Wrap(f.Path, "", err)
	}
	fi, err := r.Stat()
	if err != nil {
		return nil, skip.Wrap(f.Path, "", err)
	}
	file, err := btfc.Open(r, fi.Size())
	if err != nil {
		r.Close()
		return nil, skip.Wrap(f.Path, "", err)
	}
	for i, e := range file.Entries() {
		key := e.Key.Canonical()
		if !keep(key) {
			continue
		}
		out = append(out, &File{
			Path: f.Path + "!" + key.String(), Key: key, Size: e.Packed(),
			files: []diskFile{{File: &find.File{Path: f.Path, Size: e.Packed()}, key: key}}, btfc: &btfcEntry{file, i},
		})
	}
	return out, nil
}

// readBTFC is Read for a kernel of a corpus in one file.
func (f *File) readBTFC(ctx context.Context, mem *decompress.Arena, yield func(*Kernel) error) error {
	if !f.opts.Selects(f.Key) {
		return nil
	}
	p, e := f.btfc, f.btfc.entryOf()
	if e.Size > f.opts.MaxSize {
		return skip.Wrap(f.Path, sniff.BTFC.String(), decompress.TooLarge(f.opts.MaxSize))
	}
	if err := mem.Hold(e.ModulesSize + e.Config + e.Symbols); err != nil {
		return err
	}
	chunks := mem.Other()
	defer chunks.Release()
	if err := chunks.Hold(e.Unpacked()); err != nil {
		return err
	}
	if err := mem.Grow(e.Size); err != nil {
		return err
	}
	btf, err := mem.Append(0, func(b []byte) ([]byte, error) { return p.file.BTF(ctx, p.entry, b) })
	if err != nil {
		return cmp.Or(ctx.Err(), f.damaged(sniff.BTFC.String(), err))
	}
	k := Kernel{
		Key: f.Key, Name: f.Key.String(), Path: f.Path, BTF: btf,
		SourceSize: f.Size, Made: e.Made, From: e.HasOwnBTF(), mem: mem,
	}
	var modules []btfc.Module
	var failed error
	if !f.opts.Modules.None() {
		modules, failed = p.file.Modules(ctx, p.entry)
	}
	k.setModules(slices.DeleteFunc(modules, func(m btfc.Module) bool { return !f.opts.Modules.Has(m.Name) }))
	failed = f.damaged("modules", failed)
	if f.opts.Extras {
		k.Extras, err = p.file.Extras(ctx, p.entry)
		failed = errors.Join(failed, f.damaged("configuration and symbols", err))
	}
	if err := yield(&k); err != nil {
		return err
	}
	return cmp.Or(ctx.Err(), errors.Join(append(k.unfit, failed)...))
}

// damaged returns an error about a part of a kernel of a corpus in one file, or nil.
func (f *File) damaged(what string, err error) error {
	if err == nil {
		return nil
	}
	return &skip.Error{Path: f.Path, What: what, Err: err, Shared: true}
}

// setModules sets the modules of a kernel of a corpus in one file.
func (k *Kernel) setModules(modules []btfc.Module) {
	for _, m := range modules {
		k.Modules = append(k.Modules, Module{Name: m.Name, Path: k.Path + "!" + m.Name, BTF: m.BTF})
	}
}

// Entry returns the entry of the kernel of f in a corpus in one file. It returns nil if there is none, or if the result for the kernel depends
// on more than its BTF, that of the chosen modules, and the machine in its key.
func (f *File) Entry() *btfc.Entry {
	if f.btfc == nil || !f.opts.Selects(f.Key) || f.Key.Arch == "" {
		return nil
	}
	if e := f.btfc.entryOf(); e.Size <= f.opts.MaxSize {
		return e
	}
	return nil
}

// Indexed returns the entry of the kernel of f in a corpus in one file, if the index has everything that a listing shows of it.
// Otherwise it returns nil.
func (f *File) Indexed() *btfc.Entry {
	if f.btfc == nil || !f.opts.Selects(f.Key) || f.opts.Modules != nil {
		return nil
	}
	if e := f.btfc.entryOf(); e.Shape.Known() && e.HasOwnBTF() != "" && e.Size <= f.opts.MaxSize {
		return e
	}
	return nil
}

// usualPart is more bytes than the parts of most kernels have.
const usualPart = 256 << 10

// ReadPart is Read for a file that has an Entry. It yields a kernel with the part of the BTF that the query selects. After an error the
// file can still be read as a whole.
func (f *File) ReadPart(ctx context.Context, yield func(*Kernel) error) error {
	if f.Entry() == nil {
		return btfc.ErrWhole
	}
	return f.caught(ctx, func(ctx context.Context, mem *decompress.Arena) error {
		if err := mem.Hold(f.btfc.entryOf().Unpacked()); err != nil {
			return err
		}
		choose := f.opts.Modules.Has
		if f.opts.Modules.None() {
			choose = nil
		}
		if err := mem.Grow(usualPart); err != nil {
			return err
		}
		var part *btfc.Part
		btf, err := mem.Append(0, func(b []byte) (_ []byte, err error) {
			if part, err = f.btfc.file.Part(ctx, f.btfc.entry, choose, b); err != nil {
				return nil, err
			}
			return part.BTF, nil
		})
		if err != nil {
			return err
		}
		k := Kernel{Key: f.Key, Name: f.Key.String(), Path: f.Path, BTF: btf, PartOf: part.Size, SourceSize: f.Size, mem: mem}
		k.setModules(part.Modules)
		return yield(&k)
	})
}

// CompareWork orders files for reading. Kernels of a corpus in one file come first, in its order, because each is encoded against earlier
// ones. Then come large files, so that no worker is left alone with one at the end.
func CompareWork(a, b *File) int {
	switch {
	case a.btfc != nil && b.btfc != nil:
		return cmp.Or(cmp.Compare(a.files[0].Path, b.files[0].Path), cmp.Compare(a.btfc.entry, b.btfc.entry))
	case a.btfc != nil:
		return -1
	case b.btfc != nil:
		return 1
	}
	return cmp.Compare(b.Size, a.Size)
}
