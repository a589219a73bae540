// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/naming"
	"github.com/btfgen/btfgen/internal/corpus/pahole"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Packed describes what Pack did.
type Packed struct {
	Added    int `json:"kernels_added"`
	Kept     int `json:"kernels_kept"`
	Contents     // counts of Added and Kept
	// Lacking counts kernels of Kept whose source has a configuration or symbols that the file lacks.
	Lacking int   `json:"kept_without_config_or_symbols,omitempty"`
	Bytes   int64 `json:"bytes_added"` // growth of the file
	Kernels int   `json:"file_kernels"`
	Size    int64 `json:"file_bytes"`

	// Skipped is what could not be read, and kernels that have no place in the file.
	Skipped []*corpus.Error `json:"-"`

	Keys map[string]kernel.Key `json:"-"` // keys of Added and Kept, by the paths of the kernels
}

// ErrEmpty is returned if there is nothing to write to a new file.
var ErrEmpty = errors.New("no kernel to put into it")

// Pack adds all kernels to the .btfc file at path, which it creates if necessary. It replaces the file atomically, unless there is
// no new kernel. If note is not nil, it returns packages to note in the file, after the kernels were added; then the corpus may be empty.
//
// The order of the kernels decides which base each has, and so the size of the file. A series follows the most similar earlier
// one, and its kernels are sorted by release. The bytes do not depend on cfg.Jobs.
func Pack(ctx context.Context, cfg walk.Config, path string, note func(*Packed) []btfc.Package) (*Packed, error) {
	in, old, size, err := openPacked(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	res, err := pack(ctx, cfg, path, old, size, note)
	return res, ofOutput(path, err)
}

// pack writes the kernels of old and of the corpus. size is the bytes of old.
func pack(ctx context.Context, cfg walk.Config, path string, old *btfc.File, size int64, note func(*Packed) []btfc.Package) (*Packed, error) {
	p := &packer{cfg: cfg, files: cfg.Corpus.Files, path: path, old: old}
	damage, err := p.damage(ctx)
	if err != nil {
		return nil, err
	}
	if damage == nil {
		res, err := p.pack(ctx, size, note)
		if err != nil || len(p.replaced) == 0 {
			return res, err
		}
	}
	again, err := p.without(ctx)
	if err != nil {
		return nil, err
	}
	again.lost, again.needed = damage, p.replaced
	return again.pack(ctx, size, note)
}

// damage returns an error if kernels of the old file have damaged chunks, which makes them replaced.
func (p *packer) damage(ctx context.Context) (damage error, err error) {
	if p.old == nil {
		return nil, nil
	}
	all := make([]int, len(p.old.Entries()))
	for i := range all {
		all[i] = i
	}
	if p.old.Check(ctx, all) == nil {
		return nil, nil
	}
	for i, e := range p.old.Entries() {
		switch err := p.old.Check(ctx, []int{i}); {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			p.replace(e.Key)
			damage = cmp.Or(damage, err)
		}
	}
	return damage, nil
}

// replace notes that another kernel takes the place of one of the old file.
func (p *packer) replace(key kernel.Key) {
	if p.replaced == nil {
		p.replaced = make(map[kernel.Key]bool)
	}
	p.replaced[key.Canonical()] = true
}

// found returns an error if the corpus has no good copy of a kernel that is damaged in the old file.
func (p *packer) found() error {
	if p.lost == nil {
		return nil
	}
	missing := maps.Clone(p.needed)
	for key := range p.from {
		delete(missing, key.Canonical())
	}
	if len(missing) == 0 {
		return nil
	}
	var names []string
	for key := range missing {
		names = append(names, key.String())
	}
	slices.Sort(names)
	return fmt.Errorf("%s: %w: a good copy is needed of %s", p.path, p.lost, words.Names(names, false))
}

// pack runs p and writes the file, unless it has to replace kernels of the old one.
func (p *packer) pack(ctx context.Context, size int64, note func(*Packed) []btfc.Package) (*Packed, error) {
	cfg, path, old := p.cfg, p.path, p.old
	w, err := btfc.NewWriter(old, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer w.Discard()
	p.w, p.from = w, make(map[kernel.Key]string)
	p.encoded = limits.NewMemory(int64(max(cfg.Jobs, 1)) * encodeJob)
	p.res.Keys = make(map[string]kernel.Key)
	order, err := p.order(ctx)
	if err != nil {
		return nil, err
	}
	skipped, err := p.run(ctx, order)
	if err == nil {
		err = p.found()
	}
	if err != nil {
		return nil, err
	}
	if len(p.replaced) > 0 {
		return nil, nil
	}
	res := &p.res
	res.Kernels, res.Size = w.Len(), size
	res.Skipped = slices.Concat(skipped, cfg.Corpus.Skipped, res.Skipped)
	slices.SortFunc(res.Skipped, (*corpus.Error).Compare)
	noted := false
	w.Note(cfg.Corpus.Packages()...)
	if note != nil {
		packages := note(res)
		w.Note(packages...)
		noted = len(packages) > 0
	}
	switch {
	case res.Added > 0 || noted || p.again != nil:
		err = output.WriteFile(path, func(out io.Writer) (err error) {
			res.Size, err = w.WriteTo(out)
			return err
		})
		res.Bytes = res.Size - size
	case old == nil && p.again == nil:
		err = fmt.Errorf("%s: %w", path, ErrEmpty)
	}
	return res, err
}

// openPacked opens the .btfc file at path. It returns nil for a file that is missing or empty, such as mktemp's. The caller closes f.
func openPacked(path string) (f *os.File, old *btfc.File, size int64, err error) {
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, 0, nil
	case err != nil:
		return nil, nil, 0, err
	case !fi.Mode().IsRegular(): // opening a named pipe would wait for its writer
		return nil, nil, 0, fmt.Errorf("%s: not a regular file", path)
	}
	if f, err = os.Open(path); err != nil {
		return nil, nil, 0, err
	}
	if fi, err = f.Stat(); err == nil && fi.Size() > 0 {
		size = fi.Size()
		if old, err = btfc.Open(f, size); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	if err != nil {
		f.Close()
		return nil, nil, 0, err
	}
	return f, old, size, nil
}

// Earlier lets an encoder reuse BTF from the .btfc file at path that was made from the same DWARF. The caller calls done at the end.
func Earlier(e *pahole.Encoder, path string) (done func(), err error) {
	in, f, _, err := openPacked(path)
	if err != nil {
		return nil, err
	}
	made := make(map[btfc.Sum]int)
	if f != nil {
		for i, k := range f.Entries() {
			if k.Made.By != "" && k.Made.Of != (btfc.Sum{}) {
				made[k.Made.Of] = i
			}
		}
	}
	e.Earlier = func(ctx context.Context, of [sha256.Size]byte) ([]byte, string) {
		i, ok := made[of]
		if !ok {
			return nil, ""
		}
		btf, err := f.BTF(ctx, i, nil)
		if err != nil {
			return nil, "" // damaged: it is made again
		}
		return btf, f.Entries()[i].Made.By
	}
	return func() { in.Close() }, nil
}

// packer reads with several workers, and adds kernels in order.
type packer struct {
	w     *btfc.Writer
	cfg   walk.Config
	files []*corpus.File

	targets sync.Pool      // pool of *core.Target
	encoded *limits.Memory // memory of kernels while they are encoded

	res  Packed
	path string                // path of the file
	from map[kernel.Key]string // paths of the added kernels

	old      *btfc.File
	at       map[kernel.Key]int    // its kernels by canonical key, once replaces needs them
	replaced map[kernel.Key]bool   // kernels of old that others take the place of
	again    map[*corpus.File]bool // those of files that hold the kernels of an old file
	lost     error                 // why kernels of an old file cannot be read
	needed   map[kernel.Key]bool   // these, which the corpus must have
}

// without returns a packer for the kernels of the old file that are not replaced, and for the corpus. It encodes all of them, since
// others may be encoded against those that are replaced.
func (p *packer) without(ctx context.Context) (*packer, error) {
	old, err := corpus.Open(ctx, []string{p.path}, corpus.Options{Extras: true})
	if err != nil {
		return nil, err
	}
	again := make(map[*corpus.File]bool)
	files := slices.DeleteFunc(old.Files, func(f *corpus.File) bool { return p.replaced[f.Key.Canonical()] })
	for _, f := range files {
		again[f] = true
	}
	all := *p.cfg.Corpus
	all.Files = slices.Concat(files, all.Files)
	cfg := p.cfg
	cfg.Corpus = &all
	return &packer{cfg: cfg, files: all.Files, path: p.path, again: again}, nil
}

// replaces reports whether a kernel takes the place of the one in the old file that has its key: if that is damaged, or if it has the
// same BTF and no usable module that the new one lacks.
func (p *packer) replaces(ctx context.Context, it *btfc.Kernel) bool {
	if p.old == nil || p.from[it.Key] != "" {
		return false
	}
	if p.at == nil {
		p.at = make(map[kernel.Key]int)
		for i, e := range p.old.Entries() {
			p.at[e.Key.Canonical()] = i
		}
	}
	i, ok := p.at[it.Key.Canonical()]
	if !ok {
		return false
	}
	t := new(core.Target)
	data, err := p.old.BTF(ctx, i, nil)
	if err != nil || t.Load(ctx, "", data) != nil {
		return true
	}
	modules, err := p.old.Modules(ctx, i)
	return err != nil || bytes.Equal(data, it.BTF) && !slices.ContainsFunc(modules, func(m btfc.Module) bool {
		same := func(o btfc.Module) bool { return o.Name == m.Name && bytes.Equal(o.BTF, m.BTF) }
		return !slices.ContainsFunc(it.Modules, same) && t.Add(ctx, relo.Module{Name: m.Name, BTF: m.BTF}) == nil
	})
}

// order returns the order in which files are added.
func (p *packer) order(ctx context.Context) ([]int, error) {
	all := make([]int, len(p.files))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(a, b int) int { return p.files[a].Key.Compare(p.files[b].Key) })
	series := make(map[kernel.Key][]int)
	var heads []int
	for _, i := range all {
		s := p.files[i].Key.Series()
		if series[s] == nil {
			heads = append(heads, i)
		}
		series[s] = append(series[s], i)
	}
	sketches := make([]*btfc.Sketch, len(heads))
	if len(heads) > 1 {
		err := workers.Each(ctx, p.cfg.Jobs, len(heads), func(i int) error {
			p.files[heads[i]].First(ctx, func(btf []byte) { // errors are reported when the file is read again
				sketches[i] = cmp.Or(sketches[i], btfc.NewSketch(ctx, btf))
			})
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	order := all[:0:0]
	for _, i := range p.w.Order(sketches) {
		order = append(order, series[p.files[heads[i]].Key.Series()]...)
	}
	return order, nil
}

// run adds the files. Workers read ahead, and encode planned kernels while the next ones are planned.
func (p *packer) run(ctx context.Context, order []int) ([]*corpus.Error, error) {
	makers, ctx := workers.NewGroup(ctx, p.cfg.Jobs) // runs longer than the readers
	// Only readers share this memory. A kernel holds some of it until it is encoded, for which parents in the file may have to be decoded:
	// if they needed this memory, too, both would wait for ever.
	reading := limits.NewMemory(int64(max(p.cfg.Jobs, 1)) * readJob).Within(ctx)
	skipped, err := walk.InOrder(reading, p.cfg, order, func(f *corpus.File, k *corpus.Kernel, turn func() error) error {
		release, err := k.Keep()
		if err != nil {
			return err
		}
		encoding := false
		defer func() {
			if !encoding { // there is nothing to encode, or an error or a panic
				release()
			}
		}()
		it, err := p.prepare(ctx, k)
		if err := turn(); err != nil {
			return err
		}
		if err != nil {
			p.skip(k, err)
			return nil
		}
		added, err := p.add(ctx, f, k, it)
		if !added || err != nil {
			return err
		}
		if err := p.encode(ctx, makers, it, release); err != nil {
			return err
		}
		encoding = true
		return ctx.Err()
	})
	return skipped, cmp.Or(makers.Wait(), err)
}

// prepare returns a kernel whose memory was kept. It removes modules that other commands could not use.
func (p *packer) prepare(ctx context.Context, k *corpus.Kernel) (*btfc.Kernel, error) {
	if !k.Key.Known() {
		return nil, naming.ErrNoKey
	}
	t, _ := p.targets.Get().(*core.Target)
	if t == nil {
		t = new(core.Target)
	}
	defer p.targets.Put(t)
	if err := k.Load(ctx, t, k.Name); err != nil {
		return nil, fmt.Errorf("btf: %w", err)
	}
	modules := make([]btfc.Module, len(k.Modules))
	for i, m := range k.Modules {
		modules[i] = btfc.Module{Name: m.Name, BTF: m.BTF}
	}
	in := btfc.Input{Key: k.Key, BTF: k.BTF, Modules: modules, Extras: k.Extras, Made: k.Made}
	in.Extras.Symbols = btfc.SortSymbols(in.BTF, in.Extras.Symbols)
	for module, b := range t.Views() {
		if module == "" {
			in.Shape, in.OwnBTF = btfc.ShapeOf(b), k.OwnBTF(b)
		}
	}
	return btfc.Prepare(in)
}

// skip adds a kernel that has no place in the file.
func (p *packer) skip(k *corpus.Kernel, err error) {
	p.res.Skipped = append(p.res.Skipped, &corpus.Error{Path: k.Path, Err: err})
}

// add plans a kernel whose turn it is, and reports whether it is to be encoded.
func (p *packer) add(ctx context.Context, f *corpus.File, k *corpus.Kernel, it *btfc.Kernel) (bool, error) {
	added, err := p.w.Plan(ctx, it)
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case errors.Is(err, btfc.ErrOther) && p.replaces(ctx, it):
		p.replace(it.Key)
		return false, ctx.Err()
	case errors.Is(err, btfc.ErrOther):
		p.skip(k, corpus.Second(k.Key.String(), cmp.Or(p.from[k.Key], p.path), false))
		return false, nil
	case err != nil:
		p.skip(k, err)
		return false, nil
	case added && p.again[f]:
		return true, nil
	case added:
		p.from[k.Key] = k.Path
		p.res.Added++
	case p.from[k.Key] != "":
		p.skip(k, corpus.Second(k.Key.String(), p.from[k.Key], true))
		return false, nil
	default:
		p.res.Kept++
	}
	stored := *k
	if p.w.Lacks(it) {
		p.res.Lacking++
		stored.Extras = corpus.Extras{}
	}
	p.res.Contents.add(&stored)
	p.res.Keys[k.Path] = k.Key
	return added, nil
}

// Encoding a kernel takes up to encodeRatio bytes for each of its bytes. Together the kernels that are encoded take up to encodeJob bytes for
// each job, or one of them takes more.
const (
	encodeRatio = 8
	encodeJob   = 64 << 20
)

// readJob is how many bytes of kernels each job may hold that are read or encoded; see limits.Memory.
const readJob = 32 << 20

// encode encodes a planned kernel in another goroutine, once there is memory. It then calls release, unless it returns an error.
func (p *packer) encode(ctx context.Context, makers *workers.Group, it *btfc.Kernel, release func()) error {
	size := encodeRatio * p.w.Encodes(it)
	task := p.encoded.Open(ctx)
	if err := task.Take(size); err != nil {
		task.Close()
		return err
	}
	makers.Start(func() error {
		defer task.Close()
		defer release()
		return p.w.Make(ctx, it)
	})
	return nil
}
