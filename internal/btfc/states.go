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

// get returns the state of a kernel.
func (c *states) get(ctx context.Context, i int) (*state, error) {
	st, err := c.ahead(ctx, i, 0)
	if err == nil {
		err = c.complete(ctx, i, st)
	}
	if err != nil {
		return nil, err
	}
	return st, nil
}

// complete waits for the references of the state of kernel i.
func (c *states) complete(ctx context.Context, i int, st *state) error {
	err := st.complete()
	if err == nil {
		return nil
	}
	return c.wrap(ctx, i, err)
}

// wrap names kernel i in an error of its chunk.
func (c *states) wrap(ctx context.Context, i int, err error) error {
	e, failed := c.file.entry(ctx, i)
	if failed != nil {
		return failed
	}
	return e.wrap(ctx, e.offset, err)
}

// ahead is get, but references may still be on their way. depth is how many kernels are told from this one already.
func (c *states) ahead(ctx context.Context, i, depth int) (*state, error) {
	if i < 0 {
		return newState(), nil
	}
	if depth > limits.CorpusDepth {
		return nil, fmt.Errorf("told from more than %d others", limits.CorpusDepth)
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
		return c.ahead(ctx, i, depth) // it was somebody else's end
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

// payloads are unpacked chunks whose memory is used again, of at most so many bytes. What is decoded refers to none.
var payloads sync.Pool

const keepPayload = 8 << 20

// earlyDepth is down to which ancestor a chunk is unpacked while what it is told from is made, if that has few enough bytes.
const (
	earlyDepth   = 4
	earlyPayload = 512 << 10
)

// make makes the state of a kernel.
func (c *states) make(ctx context.Context, i, depth int) (*state, error) {
	e, err := c.file.entry(ctx, i)
	if err != nil {
		return nil, err
	}
	if e.Plain {
		return nil, errors.New("told from one that is kept as bytes")
	}
	unpack := func() (*[]byte, error) {
		buf, _ := payloads.Get().(*[]byte)
		if buf == nil {
			buf = new([]byte)
		}
		offset, packed := e.chunk()
		var err error
		*buf, err = c.file.chunk(ctx, offset, packed, e.payload, (*buf)[:0])
		return buf, err
	}
	var payload *later[*[]byte]
	if depth == 0 || depth < earlyDepth && e.payload <= earlyPayload { // not those of all ancestors at once
		payload = begin(ctx, unpack)
	}
	parent, failed := c.ahead(ctx, e.parent, depth+1)
	if failed != nil {
		return nil, failed
	}
	if payload == nil {
		payload = do(ctx, unpack)
	}
	buf, err := payload.get()
	if err != nil {
		return nil, c.wrap(ctx, i, err)
	}
	done := func() {
		if cap(*buf) <= keepPayload {
			payloads.Put(buf)
		}
	}
	st, err := decodeAhead(ctx, &reader{parent: parent}, *buf, e.Size, c.query, done)
	if err == nil {
		return st, nil
	}
	if failed := c.complete(ctx, e.parent, parent); failed != nil {
		return nil, failed
	}
	return nil, c.wrap(ctx, i, err)
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
