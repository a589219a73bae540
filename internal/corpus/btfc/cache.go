// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/btfgen/btfgen/internal/limits"
)

// chunkID identifies a chunk. The kernel is -1 for what chunks without a parent are encoded against.
type chunkID struct {
	part   part
	kernel int
}

// cache decodes chunks, each once for all goroutines that need it, and keeps the values used last. It is safe for concurrent use.
type cache[T any] struct {
	file   *File
	decode func(ctx context.Context, id chunkID, depth int) (T, error) // which calls at with depth+1
	words  func(T) int                                                 // size of a value
	keep   int                                                         // so many values, and keepWords of them, or one

	mu    sync.Mutex
	of    map[chunkID]*cached[T]
	clock int
}

// keepWords bounds the size of the values in a cache. Neighbours share most of their memory, which counts for each.
const keepWords = 16 << 20

// cached is a value that is being decoded or has been.
type cached[T any] struct {
	done  chan struct{} // closed when value or err is set
	ready bool
	value T
	err   error
	used  int // clock when it was used last
}

func (c *cache[T]) get(ctx context.Context, id chunkID) (T, error) { return c.at(ctx, id, 0) }

// at is get for the ancestor of a chunk that is depth chunks from it.
func (c *cache[T]) at(ctx context.Context, id chunkID, depth int) (value T, err error) {
	if depth > limits.CorpusDepth {
		return value, fmt.Errorf("encoded against more than %d others", limits.CorpusDepth)
	}
	c.mu.Lock()
	p := c.of[id]
	if p == nil {
		p = &cached[T]{done: make(chan struct{}), err: errUnfinished}
		c.of[id] = p
		c.touch(id)
		c.mu.Unlock()
		defer func() { // also after a panic
			c.mu.Lock()
			if p.ready = p.err == nil; p.ready {
				c.forget()
			} else {
				delete(c.of, id)
			}
			c.mu.Unlock()
			close(p.done)
		}()
		p.value, p.err = c.decode(ctx, id, depth)
		return p.value, p.err
	}
	c.touch(id)
	c.mu.Unlock()
	select {
	case <-p.done:
	case <-ctx.Done():
		return value, ctx.Err()
	}
	if p.err != nil && ctx.Err() == nil && errors.Is(p.err, context.Canceled) {
		return c.at(ctx, id, depth) // another caller was cancelled
	}
	return p.value, p.err
}

var errUnfinished = errors.New("not finished")

// touch notes that a value is used, and those of its ancestors, which its neighbours need, too.
func (c *cache[T]) touch(id chunkID) {
	c.clock++
	for range limits.CorpusDepth {
		if p := c.of[id]; p != nil {
			p.used = c.clock
		}
		if id.kernel < 0 || id.kernel >= len(c.file.entries) { // which is being written
			return
		}
		id.kernel = c.file.entries[id.kernel].parent
	}
}

// forget drops the values that were used longest ago, if there are too many.
func (c *cache[T]) forget() {
	for {
		n, words := 0, 0
		var oldest chunkID
		for id, p := range c.of {
			if !p.ready {
				continue
			}
			if n, words = n+1, words+c.words(p.value); n == 1 || p.used < c.of[oldest].used {
				oldest = id
			}
		}
		if n <= 1 || n <= c.keep && words <= keepWords {
			return
		}
		delete(c.of, oldest)
	}
}

// put adds a value.
func (c *cache[T]) put(id chunkID, value T) {
	p := &cached[T]{done: make(chan struct{}), ready: true, value: value}
	close(p.done)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[id] = p
	c.touch(id)
	c.forget()
}
