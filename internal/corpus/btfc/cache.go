// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"errors"
	"sync"

	"github.com/btfgen/btfgen/internal/limits"
)

// chunkID identifies a chunk. The kernel is -1 for what chunks without a parent are encoded against.
type chunkID struct {
	part   part
	kernel int
}

// cache decodes chunks, each once for all goroutines that need it, and keeps the states used last. It also keeps errors, so that a damaged
// chunk is decoded once however many chunks depend on it. The states count as memory of limits.Unpacked. It is safe for concurrent use.
type cache struct {
	file  *File
	query *Query // nil for states with all contents
	held  *limits.Cache

	mu    sync.Mutex
	of    map[chunkID]*cached
	clock int
}

func newCache(f *File, q *Query) *cache {
	c := &cache{file: f, query: q, of: make(map[chunkID]*cached)}
	c.held = limits.Unpacked.Cache(c.drop)
	return c
}

// Of each part, a cache keeps so many states, and so many bytes of them, or one state. Neighbours share most of their memory, which counts
// for each.
const (
	keepStates = 12
	keepBytes  = 48 << 20
)

// cached is a state that is or will be decoded, or the error of a damaged one.
type cached struct {
	get   func() (*state, error) // decodes the state when it is called first
	state *state                 // once it is decoded
	used  int                    // clock when it was used last
	users int                    // readings that need it
}

// reading is a use of states. While it is open, the states that it has count as memory, and are not decoded again.
type reading struct {
	c    *cache
	task *limits.Task
	of   []*cached
}

// open returns a reading for some chunks. It waits until there is memory for those of them and of their ancestors that are not in the
// cache. It must not be called while another goroutine waits for a state that this one decodes.
func (c *cache) open(ctx context.Context, ids ...chunkID) (*reading, error) {
	r := &reading{c: c, task: limits.Unpacked.In(ctx).Open(limits.Placed(ctx))}
	need := int64(0)
	c.mu.Lock()
	seen := make(map[chunkID]bool)
	for _, id := range ids {
		chain := int64(0)
		for first := id; id.kernel >= 0 && !seen[id]; id = c.file.parent(id) {
			seen[id] = true
			if p := c.of[id]; p != nil && p.state != nil {
				r.use(p)
				break
			}
			e := c.file.entry(id.kernel)
			chain += e.claim(id.part, c.query)
			if first == id || c.file.parent(first) == id {
				need += listsLimit(e.unitsSize(id.part), c.query)
			}
		}
		need += min(chain, limits.CorpusChain)
	}
	c.mu.Unlock()
	if err := r.task.Take(need); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// use keeps a value in the cache until the reading is closed. c.mu must be locked.
func (r *reading) use(p *cached) {
	p.users++
	r.of = append(r.of, p)
}

// get returns the state of a chunk.
func (r *reading) get(ctx context.Context, id chunkID) (*state, error) {
	r.c.mu.Lock()
	r.use(r.c.at(ctx, id))
	r.c.mu.Unlock()
	return r.c.get(ctx, id)
}

// close ends the reading.
func (r *reading) close() {
	r.task.Close()
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	for _, p := range r.of {
		p.users--
	}
	r.c.count()
}

// at returns the value of a chunk. c.mu must be locked.
func (c *cache) at(ctx context.Context, id chunkID) *cached {
	p := c.of[id]
	if p == nil {
		p = &cached{get: sync.OnceValues(func() (*state, error) { return c.file.decodeState(ctx, id, c) })}
		c.of[id] = p
	}
	return p
}

// get returns the state of a chunk, for which the caller has a reading.
func (c *cache) get(ctx context.Context, id chunkID) (*state, error) {
	c.mu.Lock()
	p := c.at(ctx, id)
	c.touch(id)
	c.mu.Unlock()
	st, err := p.get()
	cancelled := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	c.mu.Lock()
	switch {
	case err == nil && p.state == nil:
		p.state = st
		c.forget(id.part)
	case cancelled && c.of[id] == p:
		delete(c.of, id)
	}
	c.mu.Unlock()
	if cancelled && ctx.Err() == nil {
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

// oldest returns the chunk whose state was used longest ago, of those that some accepts and no reading uses.
func (c *cache) oldest(some func(chunkID) bool) (oldest chunkID, ok bool) {
	for id, p := range c.of {
		if p.state != nil && p.users == 0 && some(id) && (!ok || p.used < c.of[oldest].used) {
			oldest, ok = id, true
		}
	}
	return oldest, ok
}

// forget drops the states of a part that were used longest ago, if there are too many.
func (c *cache) forget(part part) {
	defer c.count()
	for {
		n, bytes := 0, 0
		for id, p := range c.of {
			if p.state != nil && id.part == part {
				n, bytes = n+1, bytes+p.state.memory()
			}
		}
		if n <= 1 || n <= keepStates && bytes <= keepBytes {
			return
		}
		oldest, ok := c.oldest(func(id chunkID) bool { return id.part == part })
		if !ok {
			return
		}
		delete(c.of, oldest)
	}
}

// drop drops the state that was used longest ago, if there is one that no reading uses.
func (c *cache) drop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	oldest, ok := c.oldest(func(chunkID) bool { return true })
	if ok {
		delete(c.of, oldest)
		c.count()
	}
	return ok
}

// count counts the memory of the states, each part of it once.
func (c *cache) count() {
	total := int64(0)
	seen := make(map[*shared]bool)
	for _, p := range c.of {
		if p.state == nil {
			continue
		}
		total += p.state.lists
		for s := p.state.shared; s != nil && !seen[s]; s = s.parent {
			seen[s] = true
			total += s.bytes
		}
	}
	c.held.Hold(total)
}

// put adds a value.
func (c *cache) put(id chunkID, value *state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[id] = &cached{get: func() (*state, error) { return value, nil }, state: value}
	c.touch(id)
	c.forget(id.part)
}
