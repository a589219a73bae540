// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/corpus/walk"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Packed says what Pack did.
type Packed struct {
	Added, Kept int   // kernels
	WithModules int   // of these
	WithConfig  int   // of these, with their configuration
	WithSymbols int   // and with their symbols
	Lacking     int   // kernels of Kept that have configuration or symbols which the file does not
	Bytes       int64 // that the file has grown
	Kernels     int   // in the file
	Size        int64 // bytes of the file
	Made        Made  // of Added and Kept, kernels whose BTF was made of DWARF

	// Skipped is what the corpus skipped, what could not be read, and kernels that have no place in the file.
	Skipped []*corpus.Error
}

// Pack adds all kernels to the corpus in the file at path, which is created if need be. The file is replaced by one with
// the old content and the new: whatever happens, it is the one or the other. If nothing is new it stays as it is.
//
// Which kernels are encoded against which depends on their order, and so does the size of the file. Series follow each other
// such that each is as much as possible like one before it, and their kernels by release. The same corpus makes
// the same bytes, whatever cfg.Jobs is.
func Pack(ctx context.Context, cfg walk.Config, path string) (*Packed, error) {
	old, size, done, err := openPacked(path)
	if err != nil {
		return nil, err
	}
	defer done()
	w, err := btfc.NewWriter(old, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer w.Discard()
	p := &packer{w: w, cfg: cfg, files: cfg.Corpus.Files, path: path, from: make(map[kernel.Key]string)}
	p.turn.L = &p.mu
	order, err := p.order(ctx)
	if err != nil {
		return nil, err
	}
	skipped, err := p.run(ctx, order)
	if err != nil {
		return nil, err
	}
	res := &p.res
	res.Kernels, res.Size = w.Len(), size
	res.Skipped = slices.Concat(skipped, cfg.Corpus.Skipped, res.Skipped)
	slices.SortFunc(res.Skipped, (*corpus.Error).Compare)
	switch {
	case res.Added > 0:
		err = output.WriteFile(path, func(out io.Writer) (err error) {
			res.Size, err = w.WriteTo(out)
			return err
		})
		res.Bytes = res.Size - size
	case old == nil:
		err = fmt.Errorf("%s: no kernel to put into it", path)
	}
	return res, err
}

// openPacked opens the file if there is one. The caller has to call done once it is not needed any more.
func openPacked(path string) (old *btfc.File, size int64, done func(), err error) {
	nothing := func() {}
	r, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nothing, nil
	}
	if err != nil {
		return nil, 0, nothing, err
	}
	defer func() {
		if old == nil {
			r.Close()
		}
	}()
	fi, err := r.Stat()
	if err != nil {
		return nil, 0, nothing, err
	}
	if fi.Size() == 0 && fi.Mode().IsRegular() {
		return nil, 0, nothing, nil // made by mktemp, say
	}
	if old, err = btfc.Open(r, fi.Size()); err != nil {
		return nil, 0, nothing, fmt.Errorf("%s: %w", path, err)
	}
	return old, fi.Size(), func() { r.Close() }, nil
}

// Earlier has an encoder take what it would make of a file from the corpus at path, if that has it already. done is to be called at the end.
func Earlier(e *corpus.Encoder, path string) (done func(), err error) {
	f, _, done, err := openPacked(path)
	if err != nil {
		return nil, err
	}
	made := make(map[[btfc.SumSize]byte]int)
	if f != nil {
		for i, k := range f.Entries() {
			if k.Made.By != "" && k.Made.Of != [btfc.SumSize]byte{} {
				made[k.Made.Of] = i
			}
		}
	}
	e.Earlier = func(ctx context.Context, of [btfc.SumSize]byte) ([]byte, string) {
		i, ok := made[of]
		if !ok {
			return nil, ""
		}
		btf, err := f.BTF(ctx, new(btfc.Scratch), i, nil)
		if err != nil {
			return nil, "" // damaged: it is made again
		}
		return btf, f.Entries()[i].Made.By
	}
	return done, nil
}

// packer reads with several workers, and adds in order.
type packer struct {
	w     *btfc.Writer
	cfg   walk.Config
	files []*corpus.File

	makers sync.Pool // of *btfc.Maker

	mu   sync.Mutex
	turn sync.Cond
	next int // whose turn it is
	res  Packed
	path string                // of the file
	from map[kernel.Key]string // the paths of the kernels of Added
}

// copied returns the numbers of the files, first those of the corpus in one file whose chunks are copied, in its order. There is none if
// kernels are added to a file that is there.
func (p *packer) copied() (first, others []int) {
	var from *btfc.File
	for i, f := range p.files {
		of, _ := f.Packed()
		if from == nil && p.w.Len() == 0 {
			from = of
		}
		if of != nil && of == from {
			first = append(first, i)
		} else {
			others = append(others, i)
		}
	}
	slices.SortFunc(first, func(a, b int) int { return corpus.CompareWork(p.files[a], p.files[b]) })
	return first, others
}

// order returns the numbers of the files in the order in which they are added.
func (p *packer) order(ctx context.Context) ([]int, error) {
	order, all := p.copied()
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
		err := workers.Run(ctx, p.cfg.Jobs, len(heads), func() *corpus.Scratch { return new(corpus.Scratch) }, func(ctx context.Context, s *corpus.Scratch, i int) error {
			p.files[heads[i]].Read(ctx, s, func(k *corpus.Kernel) error { // what is damaged is reported when it is read again
				sketches[i] = cmp.Or(sketches[i], btfc.NewSketch(ctx, k.BTF))
				return nil
			})
			return ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	for _, i := range p.w.Order(sketches) {
		order = append(order, series[p.files[heads[i]].Key.Series()]...)
	}
	return order, nil
}

// run adds the files. Those that are next are read ahead, and what has its place is made beside what comes next.
func (p *packer) run(ctx context.Context, order []int) ([]*corpus.Error, error) {
	position := make([]int, len(order))
	for n, i := range order {
		position[i] = n
	}
	makers, ctx := errgroup.WithContext(ctx) // which goes on when all has been read
	makers.SetLimit(max(p.cfg.Jobs, 1))
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.turn.Broadcast()
	})
	defer stop()
	skipped, err := walk.Files(ctx, p.files, order, p.cfg.Jobs, func() *corpus.Scratch { return new(corpus.Scratch) }, func(reading context.Context, s *corpus.Scratch, i int) error {
		defer p.done(ctx, position[i])
		return p.files[i].Read(reading, s, func(k *corpus.Kernel) error {
			it, err := p.prepare(k, p.files[i])
			if failed := p.wait(ctx, position[i]); failed != nil {
				return failed
			}
			if err != nil {
				p.skip(k, err)
				return nil
			}
			return p.add(ctx, makers, k, it)
		})
	}, p.cfg.Progress)
	return skipped, cmp.Or(makers.Wait(), err)
}

// wait returns when it is a file's turn.
func (p *packer) wait(ctx context.Context, n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.next != n && ctx.Err() == nil {
		p.turn.Wait()
	}
	return ctx.Err()
}

// done gives the turn to the next file.
func (p *packer) done(ctx context.Context, n int) {
	if p.wait(ctx, n) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	p.turn.Broadcast()
}

// prepare returns a kernel that is to be added. It has what is to be kept of a reader's memory, which is used again.
func (p *packer) prepare(k *corpus.Kernel, f *corpus.File) (*btfc.Kernel, error) {
	if !k.Key.Known() {
		return nil, corpus.ErrNoKey
	}
	modules := make([]btfc.Module, len(k.Modules))
	for i, m := range k.Modules {
		modules[i] = btfc.Module{Name: m.Name, BTF: p.keep(m.BTF)}
	}
	it, err := btfc.Prepare(k.Key, p.keep(k.BTF), modules)
	if err != nil {
		return nil, err
	}
	if err := it.Extras(btfc.Extras(k.Extras)); err != nil {
		return nil, err
	}
	it.Made(k.Made)
	if from, i := f.Packed(); from != nil {
		it.From(from, i)
	}
	return it, nil
}

// keep returns what stays as it is while the next kernel is read.
func (p *packer) keep(b []byte) []byte {
	if p.cfg.Jobs > 1 {
		return bytes.Clone(b)
	}
	return b
}

// skip notes a kernel that has no place in the file.
func (p *packer) skip(k *corpus.Kernel, err error) {
	p.res.Skipped = append(p.res.Skipped, &corpus.Error{Path: k.Path, Err: err})
}

// add adds a kernel, whose turn it is. With one job it waits until that has been made.
func (p *packer) add(ctx context.Context, makers *errgroup.Group, k *corpus.Kernel, it *btfc.Kernel) error {
	added, err := p.w.Plan(ctx, it)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, btfc.ErrOther):
		p.skip(k, corpus.Second(k.Key.String(), cmp.Or(p.from[k.Key], p.path), false))
		return nil
	case err != nil:
		p.skip(k, err)
		return nil
	case added:
		p.from[k.Key] = k.Path
		p.res.Added++
	case p.from[k.Key] != "":
		p.skip(k, corpus.Second(k.Key.String(), p.from[k.Key], true))
		return nil
	default:
		p.res.Kept++
	}
	p.res.Made.add(k.Made.By)
	if len(k.Modules) > 0 {
		p.res.WithModules++
	}
	if p.w.Lacks(it) {
		p.res.Lacking++
	} else {
		p.res.WithConfig += min(len(k.Config), 1)
		p.res.WithSymbols += min(len(k.Symbols), 1)
	}
	if !added {
		return nil
	}
	done := make(chan struct{})
	makers.Go(func() error {
		defer close(done)
		return p.make(ctx, it)
	})
	if p.cfg.Jobs <= 1 {
		<-done
	}
	return ctx.Err()
}

// make makes a kernel that has its place.
func (p *packer) make(ctx context.Context, it *btfc.Kernel) (err error) {
	m, _ := p.makers.Get().(*btfc.Maker)
	if m == nil {
		if m, err = btfc.NewMaker(); err != nil {
			return err
		}
	}
	defer p.makers.Put(m)
	if d := workers.Catch(ctx, func() { err = p.w.Make(ctx, m, it) }); d != nil {
		return d
	}
	return err
}
