// SPDX-License-Identifier: Apache-2.0

// Package walk reads all kernels of a corpus on several workers.
package walk

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/corpus/skip"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/workers"
)

// Config says what to read and how.
type Config struct {
	Corpus *corpus.Corpus
	Jobs   int // workers; at least one works

	Progress func(Progress) // called after each file of the corpus, by one goroutine at a time; may be nil
}

// Progress says how far a run is.
type Progress struct {
	Done, All int // files
	Skipped   int // things that were left out so far
}

// Kernels reads every kernel and passes it to a worker. newWorker makes the state of each worker, which only one goroutine uses. Several
// goroutines call kernel, each with its own state and the number of the file, in no particular order.
//
// A kernel that cannot be read, or makes kernel panic, does not affect the others: it is returned, by path, with what the corpus has
// skipped. An error of kernel ends the run and is returned, and so is that of ctx.
func Kernels[W any](ctx context.Context, cfg Config, newWorker func() W, kernel func(w W, file int, k *corpus.Kernel) error) ([]*corpus.Error, error) {
	files := cfg.Corpus.Files
	type worker struct{ state W }
	read := func(ctx context.Context, w *worker, i int) error {
		return eachOf(ctx, files[i], func(k *corpus.Kernel) error {
			sound := false
			defer func() {
				if !sound { // a panic, after which the state may be inconsistent
					w.state = newWorker()
				}
			}()
			err := kernel(w.state, i, k)
			sound = true
			return err
		})
	}
	skipped, err := Files(ctx, files, LargestFirst(files), cfg.Jobs, func() *worker { return &worker{newWorker()} }, read, cfg.Progress)
	if err != nil {
		return nil, err
	}
	skipped = append(skipped, cfg.Corpus.Skipped...)
	slices.SortFunc(skipped, (*corpus.Error).Compare)
	return skipped, nil
}

// InOrder reads the files of a corpus in the given order and calls kernel for each kernel. Several files are read at once; turn waits
// until all kernels of earlier files are done, and kernel calls it before it returns. Errors are as in [Kernels], without what the corpus
// has skipped.
func InOrder(ctx context.Context, cfg Config, order []int,
	kernel func(f *corpus.File, k *corpus.Kernel, turn func() error) error) ([]*corpus.Error, error) {
	files := cfg.Corpus.Files
	position := make([]int, len(files))
	turns := make([]chan struct{}, len(order)+1) // closed when it is the turn of the file at a position
	for n := range turns {
		turns[n] = make(chan struct{})
	}
	for n, i := range order {
		position[i] = n
	}
	close(turns[0])
	return Files(ctx, files, order, cfg.Jobs, func() struct{} { return struct{}{} }, func(ctx context.Context, _ struct{}, i int) error {
		n := position[i]
		turn := func() error {
			select {
			case <-turns[n]:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		defer func() {
			if turn() == nil {
				close(turns[n+1])
			}
		}()
		return eachOf(ctx, files[i], func(k *corpus.Kernel) error { return kernel(files[i], k, turn) })
	}, cfg.Progress)
}

// eachOf reads a file. An error of kernel ends the run.
func eachOf(ctx context.Context, f *corpus.File, kernel func(*corpus.Kernel) error) error {
	var failed error
	err := f.Read(ctx, func(k *corpus.Kernel) error {
		failed = kernel(k)
		return failed
	})
	if failed != nil {
		return stop{failed}
	}
	return err
}

// stop is an error that ends the run.
type stop struct{ error }

// LargestFirst returns the numbers of files in an order that leaves no large one for the end, when other workers are idle.
func LargestFirst(files []*corpus.File) []int {
	order := make([]int, len(files))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return corpus.CompareWork(files[a], files[b]) })
	return order
}

// Files passes every file, by its number, to a worker, in the given order. newWorker makes the state of each of jobs workers (at least
// one), which only one goroutine uses. Errors of file are those of corpus.File.Read; they are returned by path. Only ctx ends
// the run. progress is as in [Config].
func Files[W any](ctx context.Context, files []*corpus.File, order []int, jobs int, newWorker func() W,
	file func(ctx context.Context, w W, i int) error, progress func(Progress)) ([]*corpus.Error, error) {
	var skipped []*corpus.Error
	var mu sync.Mutex
	p := Progress{All: len(files)}
	place := limits.InOrder(len(order))
	err := workers.Run(ctx, jobs, len(order), newWorker, func(ctx context.Context, w W, n int) error {
		i := order[n]
		err := file(place(ctx, n), w, i)
		if s, ok := err.(stop); ok {
			return s.error
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		mu.Lock()
		defer mu.Unlock()
		for _, e := range skip.Errors(err) {
			e.Path = cmp.Or(e.Path, files[i].Path)
			skipped = append(skipped, e)
		}
		p.Done, p.Skipped = p.Done+1, len(skipped)
		if progress != nil {
			progress(p)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(skipped, (*corpus.Error).Compare)
	return skipped, nil
}
