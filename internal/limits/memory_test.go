// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"context"
	"sync"
	"testing"
)

// TestMemory checks that tasks which need much more than the limit together all end, though each waits for those before it, and that
// they hold no more than the limit and the bytes of one task.
func TestMemory(t *testing.T) {
	const tasks, steps, most = 8, 100, 250
	m := NewMemory(most)
	place := InOrder(tasks)
	done := make([]chan struct{}, tasks+1)
	for i := range done {
		done[i] = make(chan struct{})
	}
	close(done[0])
	var wg sync.WaitGroup
	peak := int64(0)
	for i := range tasks {
		task := m.Open(place(t.Context(), i))
		wg.Go(func() {
			defer task.Close()
			for range steps {
				if err := task.Take(1); err != nil {
					t.Error(err)
				}
				m.mu.Lock()
				peak = max(peak, m.held)
				m.mu.Unlock()
			}
			<-done[i]
			close(done[i+1])
		})
	}
	wg.Wait()
	if peak > most+steps || m.held != 0 || len(m.tasks) != 0 {
		t.Errorf("%d bytes held at most, want %d; %d bytes and %d tasks are left", peak, most+steps, m.held, len(m.tasks))
	}
}

// TestMemoryEarlier checks that a task never waits for one that comes after it, though that one was opened before and has taken all.
func TestMemoryEarlier(t *testing.T) {
	m := NewMemory(10)
	place := InOrder(2)
	for _, i := range []int{1, 0} {
		task := m.Open(place(t.Context(), i))
		defer task.Close()
		if err := task.Take(30); err != nil {
			t.Fatal(err)
		}
	}
	if m.held != 60 {
		t.Errorf("%d held, want 60", m.held)
	}
}

// TestMemoryGive checks that waiting ends when bytes are given back.
func TestMemoryGive(t *testing.T) {
	m := NewMemory(10)
	first, second := m.Open(t.Context()), m.Open(t.Context())
	defer first.Close()
	if err := first.Take(8); err != nil {
		t.Fatal(err)
	}
	took := make(chan error)
	go func() { took <- second.Take(5) }()
	for { // until the second one waits
		m.mu.Lock()
		waits := m.changed != nil
		m.mu.Unlock()
		if waits {
			break
		}
	}
	first.Give(8)
	if err := <-took; err != nil || m.held != 5 {
		t.Errorf("%d held, %v", m.held, err)
	}
	second.Close()
	if m.held != 0 {
		t.Errorf("%d held at the end", m.held)
	}
}

// TestMemoryPlaced checks that a task waits for those of work before it until all of them are closed, and that a task which comes before
// them does not.
func TestMemoryPlaced(t *testing.T) {
	m := NewMemory(10)
	place := InOrder(3)
	open := func(i int) *Task { return m.Open(Placed(place(t.Context(), i))) }
	first, second, kept, third := open(0), open(1), open(1), open(2)
	if err := kept.Take(10); err != nil {
		t.Fatal(err)
	}
	second.Close()
	if err := first.Take(5); err != nil {
		t.Fatal(err)
	}
	first.Close()
	if m.try(third, 1) == nil {
		t.Error("the last task did not wait for the one before it")
	}
	kept.Close()
	if m.try(third, 100) != nil {
		t.Error("the last task waits")
	}
	third.Close()
	if m.held != 0 || len(m.tasks) != 0 {
		t.Errorf("%d bytes and %d tasks are left", m.held, len(m.tasks))
	}
}

// TestMemoryWithin checks which limit a context has.
func TestMemoryWithin(t *testing.T) {
	all, own := NewMemory(10), NewMemory(10)
	if all.In(t.Context()) != all || all.In(own.Within(t.Context())) != own {
		t.Error("a context has another limit")
	}
}

// TestMemoryContext checks that a task stops waiting when its context is done.
func TestMemoryContext(t *testing.T) {
	m := NewMemory(10)
	first := m.Open(t.Context())
	defer first.Close()
	ctx, cancel := context.WithCancel(t.Context())
	second := m.Open(ctx)
	defer second.Close()
	cancel()
	if err := first.Take(20); err != nil {
		t.Errorf("the first task: %v", err)
	}
	if err := second.Take(1); err != context.Canceled {
		t.Errorf("the second task: %v", err)
	}
}
