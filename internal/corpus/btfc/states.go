// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/btfgen/btfgen/internal/limits"
)

// states decodes kernels, and caches the states used last. It is safe for concurrent use.
type states struct {
	file  *File
	query *Query // nil if there is none

	mu    sync.Mutex
	of    map[int]*pending // by the number of the kernel
	clock int
}

// pending is a state that is being decoded or has been.
type pending struct {
	done  chan struct{} // closed when state or err is set
	state *state
	err   error
	used  int // clock when it was used last
}

// The cache holds so many states, with so many words of contents, or one. Neighbours share most of their words, which count for each.
const (
	keepStates = 12
	keepWords  = 16 << 20
)

// get returns the state of kernel i, or that before the first kernel for -1.
func (c *states) get(ctx context.Context, i int) (*state, error) { return c.at(ctx, i, 0) }

// at is get for an ancestor of a kernel, which is depth kernels from it.
func (c *states) at(ctx context.Context, i, depth int) (*state, error) {
	if i < 0 {
		return newState(), nil
	}
	if depth > limits.CorpusDepth {
		return nil, fmt.Errorf("encoded against more than %d others", limits.CorpusDepth)
	}
	c.mu.Lock()
	p := c.of[i]
	if p == nil {
		p = &pending{done: make(chan struct{})}
		c.of[i] = p
		c.touch(i)
		c.mu.Unlock()
		err := errUnfinished // if a panic ends it
		var st *state
		defer func() {
			c.mu.Lock()
			if p.state, p.err = st, err; err != nil {
				delete(c.of, i)
			} else {
				c.forget()
			}
			c.mu.Unlock()
			close(p.done)
		}()
		st, err = c.make(ctx, i, depth)
		return st, err
	}
	c.touch(i)
	c.mu.Unlock()
	select {
	case <-p.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.err != nil && ctx.Err() == nil && errors.Is(p.err, context.Canceled) {
		return c.at(ctx, i, depth) // another caller was cancelled
	}
	return p.state, p.err
}

var errUnfinished = errors.New("not finished")

// touch notes that the state of kernel i is used, and those of its ancestors, which its neighbours need, too.
func (c *states) touch(i int) {
	c.clock++
	for range limits.CorpusDepth {
		if p := c.of[i]; p != nil {
			p.used = c.clock
		}
		if i < 0 || i >= len(c.file.entries) { // which is being written
			return
		}
		i = c.file.entries[i].parent
	}
}

// forget drops the states that were used longest ago, if there are too many.
func (c *states) forget() {
	for {
		n, words, oldest := 0, 0, -1
		for i, p := range c.of {
			if p.state == nil {
				continue
			}
			n, words = n+1, words+p.state.numWords
			if oldest < 0 || p.used < c.of[oldest].used {
				oldest = i
			}
		}
		if n <= 1 || n <= keepStates && words <= keepWords {
			return
		}
		delete(c.of, oldest)
	}
}

// payloads are buffers for unpacked chunks, of at most keepPayload bytes. States do not refer to them.
var payloads sync.Pool

const keepPayload = 8 << 20

// make decodes kernel i.
func (c *states) make(ctx context.Context, i, depth int) (*state, error) {
	e, err := c.file.entry(ctx, i)
	if err != nil {
		return nil, err
	}
	if e.Plain {
		return nil, errors.New("encoded against one that is kept as bytes")
	}
	offset, packed := e.chunk()
	unpack := func() (*[]byte, error) {
		buf, _ := payloads.Get().(*[]byte)
		if buf == nil {
			buf = new([]byte)
		}
		var err error
		*buf, err = c.file.chunk(ctx, offset, packed, e.payload, (*buf)[:0])
		return buf, err
	}
	unpacked := onDemand[*[]byte]
	if depth == 0 { // while the parent is decoded; not for all ancestors at once, which takes memory
		unpacked = begin[*[]byte]
	}
	payload := unpacked(ctx, unpack)
	parent, err := c.at(ctx, e.parent, depth+1)
	if err != nil {
		return nil, err
	}
	buf, err := payload.get()
	if err != nil {
		return nil, e.wrap(ctx, offset, err)
	}
	st, err := decode(ctx, parent, *buf, e.Size, c.query)
	if cap(*buf) <= keepPayload {
		payloads.Put(buf)
	}
	if err != nil {
		return nil, e.wrap(ctx, offset, err)
	}
	return st, nil
}

// remember notes a state that has been made.
func (c *states) remember(i int, st *state) {
	p := &pending{done: make(chan struct{}), state: st}
	close(p.done)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[i] = p
	c.touch(i)
	c.forget()
}
