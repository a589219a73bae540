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
	told  []int // how many are told from each kernel and have not been made yet; nil if nobody knows
}

// pending is a state that somebody makes or has made.
type pending struct {
	done  chan struct{}
	state *state
	err   error
	used  int
}

// keepStates is how many states are remembered. In a series of many kernels those that are made next need about half of them.
const keepStates = 16

// get returns the state of a kernel. depth is how many are told from it already.
func (c *states) get(ctx context.Context, i, depth int) (*state, error) {
	if i < 0 {
		return newState(c.query), nil
	}
	if depth > limits.CorpusDepth {
		return nil, fmt.Errorf("told from more than %d others", limits.CorpusDepth)
	}
	c.mu.Lock()
	if c.of == nil {
		c.begin()
	}
	p := c.of[i]
	if mine := p == nil; mine {
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
			} else if from := c.file.entries[i].parent; from >= 0 && from < len(c.told) {
				c.told[from]--
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
		return c.get(ctx, i, depth) // it was somebody else's end
	}
	return p.state, p.err
}

var errUnfinished = errors.New("not finished")

// begin makes c ready.
func (c *states) begin() {
	c.of = make(map[int]*pending)
	c.told = make([]int, len(c.file.entries))
	for i := range c.file.entries {
		if from := c.file.entries[i].parent; from >= 0 {
			c.told[from]++
		}
	}
}

// touch notes that a state is used. If there are too many it forgets one from which nothing is told any more, or else the one that
// was used longest ago.
func (c *states) touch(p *pending) {
	c.clock++
	p.used = c.clock
	if len(c.of) <= keepStates {
		return
	}
	oldest, last := -1, 0
	for i, q := range c.of {
		used := q.used
		if i < len(c.told) && c.told[i] > 0 {
			used += c.clock
		}
		if q.state != nil && (oldest < 0 || used < last) {
			oldest, last = i, used
		}
	}
	delete(c.of, oldest)
}

// make makes the state of a kernel.
func (c *states) make(ctx context.Context, i, depth int) (*state, error) {
	e := &c.file.entries[i]
	if e.Plain {
		return nil, errors.New("told from one that is kept as bytes")
	}
	offset, packed := e.chunk()
	var payload []byte
	var err error
	if depth == 0 { // while somebody else makes the parent's
		payload, err = c.file.chunk(ctx, offset, packed, e.payload)
	}
	parent, failed := c.get(ctx, e.parent, depth+1)
	if failed != nil {
		return nil, failed
	}
	if depth > 0 { // not before, as that would be those of all ancestors at once
		payload, err = c.file.chunk(ctx, offset, packed, e.payload)
	}
	if err == nil {
		var st *state
		if st, err = decode(parent, payload, e.Size, c.query); err == nil {
			return st, nil
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("kernel %s, at byte %d: %w", e.Key, offset, err)
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
}
