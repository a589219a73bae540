// SPDX-License-Identifier: Apache-2.0

package btfc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/btfgen/btfgen/internal/limits"
)

// states makes the states of kernels, and remembers those that others are likely to be told from. It is safe for
// concurrent use.
type states struct {
	file  *File
	query *Query // what they are for, nil for all of a kernel

	mu    sync.Mutex
	of    map[int]*pending
	clock int
	told  []int  // how many kernels are told from each and have not been made yet
	made  []bool // which have been made
	left  int    // how many have not
}

// pending is a state that somebody makes or has made.
type pending struct {
	done  chan struct{}
	state *state
	err   error
	used  int
}

// How many states are remembered: of those from which something is told that has not been made yet, and of others, which are asked for
// again if kernels are read in an order of their own. None of the others is that has more words of contents than most kernels
// have with all their ancestors: it would be a third of all memory.
const (
	keepNeeded = 12
	keepOthers = 3
	keepWords  = 4 << 20
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
	if c.of == nil {
		c.begin()
	}
	p := c.of[i]
	if p == nil {
		p = &pending{done: make(chan struct{})}
		c.of[i] = p
		c.touch(p)
		c.mu.Unlock()
		err := errUnfinished // if a panic ends it
		var st *state
		defer func() {
			c.mu.Lock()
			if p.state, p.err = st, err; err != nil {
				delete(c.of, i)
			} else {
				c.done(i)
			}
			c.mu.Unlock()
			close(p.done)
		}()
		st, err = c.make(ctx, i, depth)
		return st, err
	}
	c.touch(p)
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

// begin makes c ready.
func (c *states) begin() {
	c.of = make(map[int]*pending)
	c.count()
}

// count counts what is told from each kernel, of those that are expected.
func (c *states) count() {
	n := len(c.file.entries)
	c.told, c.made, c.left = make([]int, n), make([]bool, n), 0
	for i := range c.file.entries {
		if c.file.expected != nil && !c.file.expected[i] {
			c.made[i] = true
			continue
		}
		c.left++
		if from := c.file.entries[i].parent; from >= 0 {
			c.told[from]++
		}
	}
}

// done notes that the state of kernel i has been made. Once all have, they are likely to be made again.
func (c *states) done(i int) {
	if i < len(c.made) && !c.made[i] {
		c.made[i] = true
		if from := c.file.entries[i].parent; from >= 0 {
			c.told[from]--
		}
		if c.left--; c.left == 0 {
			c.count()
		}
	}
	c.forget()
}

// needed says whether something is told from kernel i that has not been made.
func (c *states) needed(i int) bool { return i >= len(c.told) || c.told[i] > 0 }

// touch notes that a state is used.
func (c *states) touch(p *pending) {
	c.clock++
	p.used = c.clock
}

// forget forgets the states that were used longest ago, if there are too many.
func (c *states) forget() {
	needed, others := 0, 0
	for i, p := range c.of {
		switch {
		case c.needed(i):
			needed++
		case p.state != nil && p.state.numWords > keepWords:
			delete(c.of, i)
		default:
			others++
		}
	}
	for ; others > keepOthers; others-- {
		c.drop(false)
	}
	for ; needed > keepNeeded; needed-- {
		c.drop(true)
	}
}

// drop forgets the state that was used longest ago, of those that are needed or of the others.
func (c *states) drop(needed bool) {
	oldest := -1
	for i, p := range c.of {
		if p.state != nil && c.needed(i) == needed && (oldest < 0 || p.used < c.of[oldest].used) {
			oldest = i
		}
	}
	delete(c.of, oldest)
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
	if c.of == nil {
		c.begin()
	}
	c.of[i] = p
	c.touch(p)
	c.forget()
}
