// SPDX-License-Identifier: Apache-2.0

package store

import (
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

	"github.com/btfgen/btfgen/internal/btfc"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/pool"
	"github.com/btfgen/btfgen/internal/sweep"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// Packed says what Pack did.
type Packed struct {
	Added, Kept int   // kernels
	WithModules int   // of these
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
// Which kernels are told from which depends on their order, and so does the size of the file. Series follow each other
// such that each is as much as possible like one before it, and their kernels by release. The same corpus makes
// the same bytes, whatever cfg.Jobs is.
func Pack(ctx context.Context, cfg sweep.Config, path string) (*Packed, error) {
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
	p := &packer{w: w, cfg: cfg, files: cfg.Corpus.Files}
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

// packer reads with several workers, and adds in order.
type packer struct {
	w     *btfc.Writer
	cfg   sweep.Config
	files []*corpus.File

	mu   sync.Mutex
	turn sync.Cond
	next int // whose turn it is
	res  Packed
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
		err := pool.Run(ctx, p.cfg.Jobs, len(heads), func() *corpus.Scratch { return new(corpus.Scratch) }, func(ctx context.Context, s *corpus.Scratch, i int) error {
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

// run adds the files. Those that are next are read ahead.
func (p *packer) run(ctx context.Context, order []int) ([]*corpus.Error, error) {
	position := make([]int, len(order))
	for n, i := range order {
		position[i] = n
	}
	stop := context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.turn.Broadcast()
	})
	defer stop()
	return sweep.Files(ctx, p.files, order, p.cfg.Jobs, func() *corpus.Scratch { return new(corpus.Scratch) }, func(ctx context.Context, s *corpus.Scratch, i int) error {
		defer p.done(ctx, position[i])
		return p.files[i].Read(ctx, s, func(k *corpus.Kernel) error {
			if err := p.wait(ctx, position[i]); err != nil {
				return err
			}
			return p.add(ctx, k, p.files[i])
		})
	}, func(done, n, _ int) {
		if p.cfg.Progress != nil {
			p.cfg.Progress(done, n)
		}
	})
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

// add adds a kernel, whose turn it is.
func (p *packer) add(ctx context.Context, k *corpus.Kernel, f *corpus.File) error {
	skip := func(err error) error {
		p.res.Skipped = append(p.res.Skipped, &corpus.Error{Path: k.Path, Err: err})
		return nil
	}
	if !k.Key.Known() {
		return skip(corpus.ErrNoKey)
	}
	modules := make([]btfc.Module, len(k.Modules))
	for i, m := range k.Modules {
		modules[i] = btfc.Module{Name: m.Name, BTF: m.BTF}
	}
	var added bool
	var err error
	if from, i := f.Packed(); from != nil {
		added, err = p.w.AddFrom(ctx, from, i, k.BTF, modules)
	} else {
		added, err = p.w.Add(ctx, k.Key, k.BTF, modules)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, btfc.ErrOther):
		return skip(fmt.Errorf("%w is %s in the file", corpus.ErrTaken, k.Key))
	case err != nil:
		return skip(err)
	case added:
		p.res.Added++
	default:
		p.res.Kept++
	}
	p.res.Made.add(k.Maker)
	if len(modules) > 0 {
		p.res.WithModules++
	}
	return nil
}
