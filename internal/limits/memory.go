// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"context"
	"maps"
	"math"
	"slices"
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
	tasks   map[*Task]bool  // those that are open
	caches  map[*Cache]bool // those that hold bytes
	changed chan struct{}   // closed when bytes are given back or a task is closed; nil if no task waits
}

// NewMemory returns a limit of max bytes.
func NewMemory(max int64) *Memory {
	return &Memory{max: max, tasks: make(map[*Task]bool), caches: make(map[*Cache]bool)}
}

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

// Placed returns a context for which all tasks that are opened have the same place. It is ctx itself if that is one of InOrder or Placed.
// A task that waits for another task of the same work does not have to wait for one in between.
func Placed(ctx context.Context) context.Context {
	if _, ok := ctx.Value(placeKey{}).(int64); ok {
		return ctx
	}
	return context.WithValue(ctx, placeKey{}, places.Add(1)-1)
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
		for !t.m.fits(n) && t.m.drop() {
		}
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

// fits reports whether there are n more bytes.
func (m *Memory) fits(n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held+n <= m.max
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

// Close gives all bytes of the task back.
func (t *Task) Close() {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	delete(t.m.tasks, t)
	t.m.held -= t.held
	t.held = 0
	t.m.wake()
}

// Cache is what holds bytes of a Memory until a task needs them. It is safe for concurrent use.
type Cache struct {
	m    *Memory
	held int64
	drop func() bool
}

// Cache returns a cache. When a task needs memory, it calls drop, which drops an item that is not in use, and returns false if there is
// none. drop may call Hold.
func (m *Memory) Cache(drop func() bool) *Cache { return &Cache{m: m, drop: drop} }

// Hold sets how many bytes the cache holds. It does not wait, so a task should hold them before. The caller must also call it when items
// are no longer in use, which lets tasks that wait drop them.
func (c *Cache) Hold(n int64) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	c.m.held += n - c.held
	c.held = n
	if c.m.caches[c] = true; n == 0 {
		delete(c.m.caches, c)
	}
	c.m.wake()
}

// Held returns the bytes that are held.
func (m *Memory) Held() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

// drop drops an item of a cache, and reports whether there was one.
func (m *Memory) drop() bool {
	m.mu.Lock()
	caches := slices.Collect(maps.Keys(m.caches))
	m.mu.Unlock()
	return slices.ContainsFunc(caches, func(c *Cache) bool { return c.drop() })
}
