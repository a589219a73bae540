// SPDX-License-Identifier: Apache-2.0

// Package workers runs work in several goroutines. A panic becomes a [Defect], the error of the object or kernel that caused it, and
// the user is invited to report it at the end. Errors of the runtime that end the program, such as running out of memory or
// stack, cannot be caught.
package workers

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// shared counts how often work was given to more than one goroutine.
var shared atomic.Int64

// Shared returns how often work was given to more than one goroutine so far. Tests that claim to be serial look at it.
func Shared() int64 { return shared.Load() }

// Run calls do for 0 to n-1, in this order, on jobs workers (at least one). newWorker returns the state of a worker, which only one
// goroutine uses. The first error of do, or ctx's, ends the run and is returned. The ctx passed to do ends with the run. A panic is
// an error of do.
func Run[W any](ctx context.Context, jobs, n int, newWorker func() W, do func(ctx context.Context, w W, i int) error) error {
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	jobs = max(1, min(jobs, n))
	if jobs > 1 {
		shared.Add(1)
	}
	for range jobs {
		g.Go(func() (err error) {
			d := Catch(ctx, func() {
				w := newWorker()
				for err == nil {
					i := int(next.Add(1)) - 1
					if err = ctx.Err(); err != nil || i >= n {
						return
					}
					err = do(ctx, w, i)
				}
			})
			if d != nil {
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

// Together calls do on jobs goroutines at once, the caller included, and waits for them. If one of the others panics, it panics with a
// [Defect], which has that goroutine's stack.
func Together(jobs int, do func()) {
	panics := make(chan *Defect, max(jobs, 1))
	var wg sync.WaitGroup
	defer func() {
		wg.Wait()
		select {
		case d := <-panics:
			panic(d)
		default:
		}
	}()
	if jobs > 1 {
		shared.Add(1)
	}
	for range jobs - 1 {
		wg.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					panics <- defectOf(v)
				}
			}()
			// Reading a mapped file that has shrunk is then a panic, which can be recovered.
			debug.SetPanicOnFault(true)
			do()
		})
	}
	do()
}

// Group is goroutines that work beside the caller. The first error of one of them ends the context that they have. A panic is an error.
// It is for one caller at a time.
type Group struct {
	g   *errgroup.Group
	ctx context.Context
}

// NewGroup returns a group of up to jobs goroutines at once (at least one), and their context.
func NewGroup(ctx context.Context, jobs int) (*Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(jobs, 1))
	return &Group{g, ctx}, ctx
}

// Start calls do in another goroutine, once there are fewer than the limit.
func (g *Group) Start(do func() error) {
	shared.Add(1)
	g.g.Go(func() (err error) {
		if d := Catch(g.ctx, func() { err = do() }); d != nil {
			return d
		}
		return err
	})
}

// Wait waits for all goroutines and returns the first error.
func (g *Group) Wait() error { return g.g.Wait() }

// Beside calls do in another goroutine of wg. A panic ends the program.
func Beside(wg *sync.WaitGroup, do func()) {
	shared.Add(1)
	wg.Go(do)
}

// Defect is a panic that was caught.
type Defect struct {
	Value any    // value of the panic
	Stack []byte // stack of the goroutine
}

func (e *Defect) Error() string { return fmt.Sprintf("defect of btfgen: %v", e.Value) }

// Unwrap returns the value of the panic if it is an error.
func (e *Defect) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// defectOf returns the defect of a panic with a value in this goroutine. If the value is the defect of another goroutine, it is returned.
func defectOf(v any) *Defect {
	if d, ok := v.(*Defect); ok {
		return d
	}
	return &Defect{v, debug.Stack()}
}

// Catch calls do. If do panics, Catch returns a Defect and adds it to the Defects of ctx.
func Catch(ctx context.Context, do func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			e := defectOf(v)
			if l := DefectsOf(ctx); l != nil {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.all = append(l.all, e)
			}
			err = e
		}
	}()
	do()
	return nil
}

// Defects are the defects of a run. They are safe for concurrent use.
type Defects struct {
	mu  sync.Mutex
	all []*Defect
}

// All returns the defects so far.
func (l *Defects) All() []*Defect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

type key struct{}

// WithDefects returns a context under which Catch adds to l.
func WithDefects(ctx context.Context, l *Defects) context.Context {
	return context.WithValue(ctx, key{}, l)
}

// DefectsOf returns the Defects of a context, or nil.
func DefectsOf(ctx context.Context) *Defects {
	l, _ := ctx.Value(key{}).(*Defects)
	return l
}
