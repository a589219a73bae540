// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"sync"

	"github.com/btfgen/btfgen/internal/workers"
)

// later is a value that is being made, or will be when it is needed.
type later[T any] struct {
	start func() // makes the value if nobody has yet; nil if another goroutine does
	done  chan struct{}
	value T
	err   error
}

// begin has another goroutine make a value.
func begin[T any](ctx context.Context, how func() (T, error)) *later[T] {
	l := &later[T]{done: make(chan struct{})}
	go l.make(ctx, how)
	return l
}

// onDemand has the first call of get make a value.
func onDemand[T any](ctx context.Context, how func() (T, error)) *later[T] {
	l := &later[T]{done: make(chan struct{})}
	l.start = sync.OnceFunc(func() { l.make(ctx, how) })
	return l
}

// do makes a value before it returns.
func do[T any](ctx context.Context, how func() (T, error)) *later[T] {
	l := &later[T]{done: make(chan struct{})}
	l.make(ctx, how)
	return l
}

func (l *later[T]) make(ctx context.Context, how func() (T, error)) {
	defer close(l.done)
	if d := workers.Catch(ctx, func() { l.value, l.err = how() }); d != nil {
		l.err = d
	}
}

// get waits for the value.
func (l *later[T]) get() (T, error) {
	if l.start != nil {
		l.start()
	}
	<-l.done
	return l.value, l.err
}
