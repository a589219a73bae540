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

// cached is a state that is or will be decoded.
type cached struct {
	get   func() (*state, error) // decodes the state when it is called first
	words int                    // of the state, once it is decoded
	used  int                    // clock when it was used last
}

// size returns about how many words of memory a state takes.
func (s *state) size() int { return s.numWords + s.textBytes/4 }

func (c *cache) get(ctx context.Context, id chunkID) (*state, error) { return c.at(ctx, id, 0) }

// at is get for the ancestor of a chunk that is depth chunks from it.
func (c *cache) at(ctx context.Context, id chunkID, depth int) (*state, error) {
	if depth > limits.CorpusDepth {
		return nil, fmt.Errorf("encoded against more than %d others", limits.CorpusDepth)
	}
	c.mu.Lock()
	p := c.of[id]
	if p == nil {
		p = &cached{get: sync.OnceValues(func() (*state, error) { return c.file.decodeState(ctx, id, depth) })}
		c.of[id] = p
	}
	c.touch(id)
	c.mu.Unlock()
	st, err := p.get()
	c.mu.Lock()
	switch {
	case err == nil && p.words == 0:
		p.words = st.size()
		c.forget()
	case err != nil && c.of[id] == p:
		delete(c.of, id)
	}
	c.mu.Unlock()
	if err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return c.at(ctx, id, depth) // another caller was cancelled
	}
	return st, err
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
			if p.words == 0 {
				continue
			}
			if n, words = n+1, words+p.words; n == 1 || p.used < c.of[oldest].used {
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
	c.of[id] = &cached{get: func() (*state, error) { return value, nil }, words: value.size()}
	c.touch(id)
	c.forget()
}
