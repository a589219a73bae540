// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"sync"

	"github.com/btfgen/btfgen/internal/workers"
)

// later is a value that is computed in the background, or when it is needed. The zero later has the zero value.
type later[T any] struct {
	start func() // computes the value on demand; nil if another goroutine does
	done  chan struct{}
	value T
	err   error
}

// begin computes a value in another goroutine.
func begin[T any](ctx context.Context, how func() (T, error)) *later[T] {
	l := &later[T]{done: make(chan struct{})}
	go l.make(ctx, how)
	return l
}

// onDemand computes a value in the first call of get.
func onDemand[T any](ctx context.Context, how func() (T, error)) *later[T] {
	l := &later[T]{done: make(chan struct{})}
	l.start = sync.OnceFunc(func() { l.make(ctx, how) })
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
	if l.done != nil {
		<-l.done
	}
	return l.value, l.err
}
