// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/btfgen/btfgen/internal/limits"
)

// chunkID identifies a chunk. The kernel is -1 for what chunks without a parent are encoded against.
type chunkID struct {
	part   part
	kernel int
}

// cache decodes chunks, each once for all goroutines that need it at a time, and keeps the states used last. It is safe for concurrent use.
type cache struct {
	file     *File
	decoding singleflight.Group

	mu    sync.Mutex
	of    map[chunkID]*cached
	clock int
}

// A cache keeps so many states, and so many words of them, or one state. Neighbours share most of their memory, which counts for each.
const (
	keepStates = 12
	keepWords  = 20 << 20
)

type cached struct {
	value *state
	used  int // clock when it was used last
}

func (c *cache) get(ctx context.Context, id chunkID) (*state, error) { return c.at(ctx, id, 0) }

// at is get for the ancestor of a chunk that is depth chunks from it.
func (c *cache) at(ctx context.Context, id chunkID, depth int) (*state, error) {
	if depth > limits.CorpusDepth {
		return nil, fmt.Errorf("encoded against more than %d others", limits.CorpusDepth)
	}
	c.mu.Lock()
	c.touch(id)
	p := c.of[id]
	c.mu.Unlock()
	if p != nil {
		return p.value, nil
	}
	v, err, _ := c.decoding.Do(fmt.Sprint(id), func() (any, error) {
		st, err := c.file.decodeState(ctx, id, depth)
		if err == nil {
			c.put(id, st)
		}
		return st, err
	})
	if err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return c.at(ctx, id, depth) // another caller was cancelled
	}
	if err != nil {
		return nil, err
	}
	return v.(*state), nil
}

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
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[id] = &cached{value: value}
	c.touch(id)
	c.forget()
}
