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

// cache decodes chunks, each once for all goroutines that need it, and keeps the states used last. It is safe for concurrent use.
type cache struct {
	file *File

	mu    sync.Mutex
	of    map[chunkID]*cached
	clock int
}

// A cache keeps so many states, and so many words of them, or one state. Neighbours share most of their memory, which counts for each.
const (
	keepStates = 12
	keepWords  = 20 << 20
)

// cached is a state that is being decoded or has been.
type cached struct {
	done  chan struct{} // closed when value or err is set
	ready bool
	value *state
	err   error
	used  int // clock when it was used last
}

func (c *cache) get(ctx context.Context, id chunkID) (*state, error) { return c.at(ctx, id, 0) }

// at is get for the ancestor of a chunk that is depth chunks from it.
func (c *cache) at(ctx context.Context, id chunkID, depth int) (*state, error) {
	if depth > limits.CorpusDepth {
		return nil, fmt.Errorf("encoded against more than %d others", limits.CorpusDepth)
	}
	c.mu.Lock()
	p := c.of[id]
	if p == nil {
		p = &cached{done: make(chan struct{}), err: errUnfinished}
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
		p.value, p.err = c.file.decodeState(ctx, id, depth)
		return p.value, p.err
	}
	c.touch(id)
	c.mu.Unlock()
	select {
	case <-p.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.err != nil && ctx.Err() == nil && errors.Is(p.err, context.Canceled) {
		return c.at(ctx, id, depth) // another caller was cancelled
	}
	return p.value, p.err
}

var errUnfinished = errors.New("not finished")

// touch notes that a value is used, and those of its ancestors, which its neighbours need, too.
func (c *cache) touch(id chunkID) {
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
func (c *cache) forget() {
	for {
		n, words := 0, 0
		var oldest chunkID
		for id, p := range c.of {
			if !p.ready {
				continue
			}
			if n, words = n+1, words+p.value.numWords+p.value.textBytes/4; n == 1 || p.used < c.of[oldest].used {
				oldest = id
			}
		}
		if n <= 1 || n <= keepStates && words <= keepWords {
			return
		}
		delete(c.of, oldest)
	}
}

// put adds a value.
func (c *cache) put(id chunkID, value *state) {
	p := &cached{done: make(chan struct{}), ready: true, value: value}
	close(p.done)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[id] = p
	c.touch(id)
	c.forget()
}
