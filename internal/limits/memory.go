// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
)

// Memory limits the bytes that the tasks of a process hold together. A task that needs more than is left waits until others give theirs
// back. The first of the open tasks never waits, so one of them always ends. Hence the tasks can exceed the limit by the bytes of one
// of them, and of each that was opened before one that comes before it.
type Memory struct {
	max int64

	mu      sync.Mutex
	held    int64
	tasks   map[*Task]bool // those that are open
	changed chan struct{}  // closed when bytes are given back or a task is closed; nil if no task waits
}

// NewMemory returns a limit of max bytes.
func NewMemory(max int64) *Memory { return &Memory{max: max, tasks: make(map[*Task]bool)} }

// Task is what holds bytes of a Memory. One goroutine uses it. A nil Task holds bytes without limit.
type Task struct {
	m     *Memory
	ctx   context.Context
	place int64
	held  int64
}

type (
	placeKey  struct{}
	memoryKey struct{}
)

var places atomic.Int64

// Within returns a context for which In returns m.
func (m *Memory) Within(ctx context.Context) context.Context {
	return context.WithValue(ctx, memoryKey{}, m)
}

// In returns the Memory of Within if ctx has one, or else m.
func (m *Memory) In(ctx context.Context) *Memory {
	if of, ok := ctx.Value(memoryKey{}).(*Memory); ok {
		return of
	}
	return m
}

// InOrder returns a function that returns the context for each of n tasks, from 0. Of these tasks, the first is always the one with the
// lowest number, so tasks may wait for those with lower numbers. They should be opened by number, or nearly so, see [Memory].
func InOrder(n int) func(ctx context.Context, i int) context.Context {
	end := places.Add(int64(n))
	return func(ctx context.Context, i int) context.Context {
		return context.WithValue(ctx, placeKey{}, end-int64(n)+int64(i))
	}
}

// Open opens a task. It comes after all others, unless ctx is one of InOrder. Take fails once ctx is done. The caller must call Close.
func (m *Memory) Open(ctx context.Context) *Task {
	place, ok := ctx.Value(placeKey{}).(int64)
	if !ok {
		place = places.Add(1) - 1
	}
	t := &Task{m: m, ctx: ctx, place: place}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tasks[t] = true
	return t
}

// Take takes n bytes, for which it may have to wait.
func (t *Task) Take(n int64) error {
	if t == nil || n <= 0 {
		return nil
	}
	for {
		changed := t.m.try(t, n)
		if changed == nil {
			return nil
		}
		select {
		case <-changed:
		case <-t.ctx.Done():
			return t.ctx.Err()
		}
	}
}

// try takes n bytes for a task, or returns what is closed when it should try again.
func (m *Memory) try(t *Task, n int64) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held+n <= m.max || t.place == m.first() {
		m.held += n
		t.held += n
		return nil
	}
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	return m.changed
}

// first returns the place of the first open task.
func (m *Memory) first() int64 {
	first := int64(math.MaxInt64)
	for t := range m.tasks {
		first = min(first, t.place)
	}
	return first
}

// Held returns the bytes of the task.
func (t *Task) Held() int64 { return t.held }

// Give gives n bytes back.
func (t *Task) Give(n int64) {
	if t == nil {
		return
	}
	t.held -= n
	t.m.give(n)
}

func (m *Memory) give(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held -= n
	m.wake()
}

func (m *Memory) wake() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// Detach takes n bytes that outlive the task, until give is called, once. Until then, tasks that come after t are not the first one and
// wait, so what holds the bytes must not wait for those tasks.
func (t *Task) Detach(n int64) (give func(), err error) {
	if err := t.Take(n); err != nil {
		return nil, err
	}
	return t.Leave(n), nil
}

// Leave is Detach for n bytes that the task holds already.
func (t *Task) Leave(n int64) (give func()) {
	if t == nil {
		return func() {}
	}
	d := &Task{m: t.m, place: t.place, held: n}
	t.held -= n
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	t.m.tasks[d] = true
	return d.Close
}

// Close gives all bytes of the task back, except those that were detached.
func (t *Task) Close() {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	delete(t.m.tasks, t)
	t.m.held -= t.held
	t.held = 0
	t.m.wake()
}
