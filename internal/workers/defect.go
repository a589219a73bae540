// SPDX-License-Identifier: Apache-2.0

// Package workers keeps mistakes of ours from costing more than the one object or kernel on which they
// show: a panic becomes an error there, and is noted for the end of the run, which asks for a report.
//
// Errors that the runtime ends the program with, such as running out of memory or of stack, cannot be
// caught.
package workers

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// Defect is a panic that was caught.
type Defect struct {
	Value any    // of the panic
	Stack []byte // of the goroutine, where it was caught
}

func (e *Defect) Error() string { return fmt.Sprintf("defect of btfgen: %v", e.Value) }

// Catch calls do and returns nil or, if do panics, an Defect, which it adds to the Defects of ctx, if that has one.
func Catch(ctx context.Context, do func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			e := &Defect{v, debug.Stack()}
			if l := DefectsOf(ctx); l != nil {
				l.add(e)
			}
			err = e
		}
	}()
	do()
	return nil
}

// Defects are the defects of a run. The zero value is ready; it is safe for concurrent use.
type Defects struct {
	// Stacks says that the user asked for the stacks. It is set before the run begins.
	Stacks bool

	mu  sync.Mutex
	all []*Defect
}

func (l *Defects) add(e *Defect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
}

// All returns the defects so far, in no particular order.
func (l *Defects) All() []*Defect {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[:len(l.all):len(l.all)]
}

type key struct{}

// WithDefects returns a context under which Catch adds to l.
func WithDefects(ctx context.Context, l *Defects) context.Context {
	return context.WithValue(ctx, key{}, l)
}

// DefectsOf returns the Defects of a context, nil if it has none.
func DefectsOf(ctx context.Context) *Defects {
	l, _ := ctx.Value(key{}).(*Defects)
	return l
}
