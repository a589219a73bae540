// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"errors"
	"sync"
)

// chunkID identifies a chunk. The kernel is -1 for what chunks without a parent are encoded against.
type chunkID struct {
	part   part
	kernel int
}

// cache decodes chunks, each once for all goroutines that need it, and keeps the states used last. It is safe for concurrent use.
type cache struct {
	file  *File
	query *Query // nil for states with all contents

	mu    sync.Mutex
	of    map[chunkID]*cached
	clock int
}

func newCache(f *File, q *Query) *cache {
	return &cache{file: f, query: q, of: make(map[chunkID]*cached)}
}

// Of each part, a cache keeps so many states, and so many bytes of them, or one state. Neighbours share most of their memory, which counts
// for each.
const (
	keepStates = 12
	keepBytes  = 48 << 20
)

// cached is a state that is or will be decoded.
type cached struct {
	get   func() (*state, error) // decodes the state when it is called first
	bytes int                    // of the state, once it is decoded
	used  int                    // clock when it was used last
}

// get returns the state of a chunk.
func (c *cache) get(ctx context.Context, id chunkID) (*state, error) {
	c.mu.Lock()
	p := c.of[id]
	if p == nil {
		p = &cached{get: sync.OnceValues(func() (*state, error) { return c.file.decodeState(ctx, id, c) })}
		c.of[id] = p
	}
	c.touch(id)
	c.mu.Unlock()
	st, err := p.get()
	c.mu.Lock()
	switch {
	case err == nil && p.bytes == 0:
		p.bytes = st.memory()
		c.forget(id.part)
	case err != nil && c.of[id] == p:
		delete(c.of, id)
	}
	c.mu.Unlock()
	if err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return c.get(ctx, id) // another caller was cancelled
	}
	return st, err
}

// touch notes that a value is used, and those of its ancestors, which its neighbours need, too.
func (c *cache) touch(id chunkID) {
	c.clock++
	for ; id.kernel >= 0; id = c.file.parent(id) {
		if p := c.of[id]; p != nil {
			p.used = c.clock
		}
	}
}

// forget drops the values of a part that were used longest ago, if there are too many.
func (c *cache) forget(part part) {
	for {
		n, bytes := 0, 0
		var oldest chunkID
		for id, p := range c.of {
			if p.bytes == 0 || id.part != part {
				continue
			}
			if n, bytes = n+1, bytes+p.bytes; n == 1 || p.used < c.of[oldest].used {
				oldest = id
			}
		}
		if n <= 1 || n <= keepStates && bytes <= keepBytes {
			return
		}
		delete(c.of, oldest)
	}
}

// put adds a value.
func (c *cache) put(id chunkID, value *state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[id] = &cached{get: func() (*state, error) { return value, nil }, bytes: value.memory()}
	c.touch(id)
	c.forget(id.part)
}
