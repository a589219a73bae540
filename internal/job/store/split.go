// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"github.com/btfgen/btfgen/internal/corpus/artifact"
	"github.com/btfgen/btfgen/internal/corpus/btfc"
	"github.com/btfgen/btfgen/internal/workers"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// seriesOf returns the numbers of the kernels of a file by distribution, version and arch, in the order of the file.
func seriesOf(f *btfc.File) map[kernel.Key][]int {
	all := make(map[kernel.Key][]int)
	if f == nil {
		return all
	}
	for i, e := range f.Entries() {
		s := artifact.SeriesOf(e.Key)
		all[s] = append(all[s], i)
	}
	return all
}

// packagesOf returns the packages of a series.
func packagesOf(f *btfc.File, series kernel.Key) (all []btfc.Package) {
	for _, p := range f.Packages() {
		of := p.Kernel
		if of == (kernel.Key{}) {
			of, _ = kernel.ParseKey(p.Series + "/-")
		}
		if artifact.SeriesOf(of) == series {
			all = append(all, p)
		}
	}
	return all
}

// newestOf returns the release of the newest of some kernels.
func newestOf(f *btfc.File, kernels []int) string {
	var keys []kernel.Key
	for _, i := range kernels {
		keys = append(keys, f.Entries()[i].Key)
	}
	return slices.MinFunc(keys, byAge).Release
}

// contentsOf returns the sum of some kernels, as annotations have it.
func contentsOf(ctx context.Context, f *btfc.File, kernels []int) (string, error) {
	sum, err := f.Contents(ctx, kernels)
	return hex.EncodeToString(sum[:]), err
}

// adder adds kernels of other files to a new one.
type adder struct {
	w    *btfc.Writer
	jobs int

	Encoded int // kernels that were encoded anew
}

// add adds kernels of f: their chunks, or else, if those are encoded against other kernels, the kernels encoded anew. If skip is not nil, it is
// called for kernels that cannot be read, which are then not added.
func (a *adder) add(ctx context.Context, f *btfc.File, kernels []int, skip func(i int, err error)) error {
	from := a.w.From(f)
	group, ctx := workers.NewGroup(ctx, a.jobs)
	one := func(i int) error {
		taken, err := from.Take(i)
		if taken || err != nil {
			return err
		}
		in, err := f.Input(ctx, i)
		if err != nil {
			if skip == nil || ctx.Err() != nil {
				return fmt.Errorf("%s: %w", f.Entries()[i].Key, err)
			}
			skip(i, err)
			return nil
		}
		k, err := btfc.Prepare(in)
		if err != nil {
			return err
		}
		if _, err := a.w.Plan(ctx, k); err != nil {
			return err
		}
		a.Encoded++
		group.Start(func() error { return a.w.Make(ctx, k) })
		return ctx.Err()
	}
	var err error
	for _, i := range kernels {
		if err = one(i); err != nil {
			break
		}
	}
	return cmp.Or(group.Wait(), err)
}

// split writes the kernels of a series to a file of their own. The same kernels give the same bytes.
func split(ctx context.Context, f *btfc.File, series kernel.Key, kernels []int, dir string, jobs int, out io.Writer) error {
	w, err := btfc.NewWriter(nil, dir)
	if err != nil {
		return err
	}
	defer w.Discard()
	a := &adder{w: w, jobs: jobs}
	if err := a.add(ctx, f, kernels, nil); err != nil {
		return err
	}
	w.Note(packagesOf(f, series)...)
	_, err = w.WriteTo(out)
	return err
}
