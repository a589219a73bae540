// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// packed is where a kernel is in a corpus in one file.
type packed struct {
	file  *btfc.File
	entry int
}

func (p *packed) entryOf() *btfc.Entry { return &p.file.Entries()[p.entry] }

// packed removes corpora in one file from the files, and returns the kernels in them that keep accepts. A damaged file is skipped, unless
// the user named it.
func (w *walk) packed(keep func(kernel.Key) bool) (units []*File, err error) {
	w.files = slices.DeleteFunc(w.files, func(f found) bool {
		if f.kind != kindBTFC || err != nil {
			return false
		}
		more, failed := f.units(keep)
		switch {
		case failed == nil:
			units = append(units, more...)
		case f.source:
			err = failed
		default:
			w.skip(f.path, failed)
		}
		return true
	})
	return units, err
}

// units returns a unit for each kernel in a corpus in one file that keep accepts.
func (f *found) units(keep func(kernel.Key) bool) (units []*File, err error) {
	r, err := os.Open(f.path) // stays open
	if err != nil {
		return nil, wrap(f.path, "", err)
	}
	fi, err := r.Stat()
	if err != nil {
		return nil, wrap(f.path, "", err)
	}
	file, err := btfc.Open(r, fi.Size())
	if err != nil {
		r.Close()
		return nil, wrap(f.path, "", err)
	}
	for i := range file.Entries() {
		e := &file.Entries()[i]
		key := e.Key.Canonical()
		if !keep(key) {
			continue
		}
		units = append(units, &File{
			Path: f.path + "!" + key.String(), Key: key, Size: e.Packed(),
			parts: []part{{path: f.path, key: key, size: e.Packed(), kind: kindBTFC}}, packed: &packed{file, i},
		})
	}
	return units, nil
}

// readPacked is Read for a kernel of a corpus in one file.
func (f *File) readPacked(ctx context.Context, s *Scratch, yield func(*Kernel) error) error {
	defer s.trim()
	if !f.opts.Selects(f.Key) {
		return nil
	}
	p, e := f.packed, f.packed.entryOf()
	if e.Size > f.opts.MaxSize {
		return wrap(f.Path, kindBTFC.String(), decompress.TooLarge(f.opts.MaxSize))
	}
	var err error
	if s.btf.B, err = p.file.BTF(ctx, &s.packed, p.entry, s.btf.B[:0]); err != nil {
		return cmp.Or(ctx.Err(), wrap(f.Path, kindBTFC.String(), err))
	}
	k := Kernel{Key: f.Key, Name: f.Key.String(), Path: f.Path, BTF: s.btf.B, SourceSize: f.Size, AsBytes: e.Plain, Made: e.Made}
	var modules []btfc.Module
	var failed error
	if !f.opts.NoModules {
		modules, failed = p.file.Modules(ctx, p.entry)
	}
	for _, m := range modules {
		k.Modules = append(k.Modules, core.Module{Name: m.Name, BTF: m.BTF})
		k.ModulePaths = append(k.ModulePaths, f.Path+"!"+m.Name)
	}
	if failed != nil {
		failed = wrap(f.Path, "modules", failed)
	}
	if f.opts.Extras {
		if k.Extras, err = p.file.Extras(ctx, p.entry); err != nil {
			failed = errors.Join(failed, wrap(f.Path, "configuration and symbols", err))
		}
	}
	if err := yield(&k); err != nil {
		return err
	}
	return cmp.Or(ctx.Err(), failed)
}

// Parts reads the types of kernels in corpora in one file that a query selects. It is safe for concurrent use.
type Parts struct {
	query *btfc.Query
	mu    sync.Mutex
	of    map[*btfc.File]*btfc.Parts
}

// NewParts returns a reader for a query.
func NewParts(q *btfc.Query) *Parts {
	return &Parts{query: q, of: make(map[*btfc.File]*btfc.Parts)}
}

// Entry returns the entry of the kernel of f in a corpus in one file. It returns nil if there is none, or if the result for the kernel depends
// on more than its BTF and the machine in its key.
func (f *File) Entry() *btfc.Entry {
	if f.packed == nil || !f.opts.Selects(f.Key) || f.Key.Arch == "" {
		return nil
	}
	if e := f.packed.entryOf(); e.Modules == 0 && e.Size <= f.opts.MaxSize {
		return e
	}
	return nil
}

// Read is File.Read for a file that has an Entry. It yields a kernel with the part of the BTF that the query selects. After an error the
// file can still be read as a whole.
func (p *Parts) Read(ctx context.Context, f *File, s *Scratch, yield func(*Kernel) error) error {
	return p.read(ctx, f, s, (*btfc.Parts).BTF, func(k *Kernel) error {
		k.Part = true
		return yield(k)
	})
}

// Whole is like Read, and yields the kernel with all of its BTF.
func (p *Parts) Whole(ctx context.Context, f *File, s *Scratch, yield func(*Kernel) error) error {
	return p.read(ctx, f, s, (*btfc.Parts).Whole, yield)
}

func (p *Parts) read(ctx context.Context, f *File, s *Scratch, btf func(*btfc.Parts, context.Context, *btfc.Scratch, int, []byte) ([]byte, error), yield func(*Kernel) error) (err error) {
	if f.Entry() == nil {
		return btfc.ErrWhole
	}
	read := func() {
		defer s.trim()
		if s.btf.B, err = btf(p.file(f.packed.file), ctx, &s.packed, f.packed.entry, s.btf.B[:0]); err == nil {
			err = yield(&Kernel{Key: f.Key, Name: f.Key.String(), Path: f.Path, BTF: s.btf.B, SourceSize: f.Size})
		}
	}
	if d := workers.Catch(ctx, read); d != nil {
		*s = Scratch{}
		return wrap(f.Path, "", d)
	}
	return err
}

func (p *Parts) file(f *btfc.File) *btfc.Parts {
	p.mu.Lock()
	defer p.mu.Unlock()
	parts := p.of[f]
	if parts == nil {
		parts = f.Parts(p.query)
		p.of[f] = parts
	}
	return parts
}

// packedSums is Sums for a kernel of a corpus in one file, from its index.
func (f *File) packedSums() [][sha256.Size]byte {
	e := f.packed.entryOf()
	sums := [][sha256.Size]byte{e.Sum}
	if e.Modules > 0 {
		sums = append(sums, e.ModulesSum)
	}
	return sums
}

// Packed returns the corpus in one file that has the kernel, and its number there, or nil.
func (f *File) Packed() (*btfc.File, int) {
	if f.packed == nil {
		return nil, 0
	}
	return f.packed.file, f.packed.entry
}

// CompareWork orders files for reading. Kernels of a corpus in one file come first, in its order, because each is encoded against earlier
// ones. Then come large files, so that no worker is left alone with one at the end.
func CompareWork(a, b *File) int {
	switch {
	case a.packed != nil && b.packed != nil:
		return cmp.Or(cmp.Compare(a.parts[0].path, b.parts[0].path), cmp.Compare(a.packed.entry, b.packed.entry))
	case a.packed != nil:
		return -1
	case b.packed != nil:
		return 1
	}
	return cmp.Compare(b.Size, a.Size)
}
