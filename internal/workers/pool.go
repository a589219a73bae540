// SPDX-License-Identifier: Apache-2.0

// Package workers has work done by several goroutines.
package workers

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Run calls do for each of 0 to n-1, in this order, on jobs workers (at least one). newWorker makes
// the state of each, which only one goroutine uses. The first error of do ends the run and is
// returned, and so is that of ctx; the ctx that do gets ends with the run. A panic is a Defect of do.
func Run[W any](ctx context.Context, jobs, n int, newWorker func() W, do func(ctx context.Context, w W, i int) error) error {
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range max(1, min(jobs, n)) {
		work := func() error {
			w := newWorker()
			for {
				if err := ctx.Err(); err != nil {
					return err
				}
				i := int(next.Add(1)) - 1
				if i >= n {
					return nil
				}
				if err := do(ctx, w, i); err != nil {
					return err
				}
			}
		}
		g.Go(func() (err error) {
			if d := Catch(ctx, func() { err = work() }); d != nil {
				return d
			}
			return err
		})
	}
	return g.Wait()
}

// Each is Run for workers without state.
func Each(ctx context.Context, jobs, n int, do func(i int) error) error {
	return Run(ctx, jobs, n, func() struct{} { return struct{}{} }, func(_ context.Context, _ struct{}, i int) error { return do(i) })
}
