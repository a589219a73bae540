// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"

	"github.com/btfgen/btfgen/internal/defect"
)

// later is a value that another goroutine makes.
type later[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// begin has another goroutine make a value.
func begin[T any](ctx context.Context, do func() (T, error)) *later[T] {
	l := &later[T]{done: make(chan struct{})}
	go func() {
		defer close(l.done)
		if d := defect.Catch(ctx, func() { l.value, l.err = do() }); d != nil {
			l.err = d
		}
	}()
	return l
}

// get waits for the value.
func (l *later[T]) get() (T, error) {
	<-l.done
	return l.value, l.err
}
