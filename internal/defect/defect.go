// SPDX-License-Identifier: Apache-2.0

// Package defect keeps mistakes of ours from costing more than the one object or kernel on which they
// show: a panic becomes an error there, and is noted for the end of the run, which asks for a report.
//
// Errors that the runtime ends the program with, such as running out of memory or of stack, cannot be
// caught.
package defect

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// Error is a panic that was caught.
type Error struct {
	Value any    // of the panic
	Stack []byte // of the goroutine, where it was caught
}

func (e *Error) Error() string { return fmt.Sprintf("defect of btfgen: %v", e.Value) }

// Catch calls do and returns nil or, if do panics, an Error, which it adds to the Log of ctx, if that has one.
func Catch(ctx context.Context, do func()) (err error) {
	defer func() {
		if v := recover(); v != nil {
			e := &Error{v, debug.Stack()}
			if l := From(ctx); l != nil {
				l.add(e)
			}
			err = e
		}
	}()
	do()
	return nil
}

// Log has the defects of a run. The zero value is ready; it is safe for concurrent use.
type Log struct {
	// Stacks says that the user asked for the stacks. It is set before the run begins.
	Stacks bool

	mu  sync.Mutex
	all []*Error
}

func (l *Log) add(e *Error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
}

// All returns the defects so far, in no particular order.
func (l *Log) All() []*Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all[:len(l.all):len(l.all)]
}

type key struct{}

// With returns a context under which Catch adds to l.
func With(ctx context.Context, l *Log) context.Context { return context.WithValue(ctx, key{}, l) }

// From returns the Log of a context, nil if it has none.
func From(ctx context.Context) *Log {
	l, _ := ctx.Value(key{}).(*Log)
	return l
}
