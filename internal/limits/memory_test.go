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

// TestMemoryDetach checks that detached bytes stay held after their task, and that waiting ends when they are given back.
func TestMemoryDetach(t *testing.T) {
	m := NewMemory(10)
	first, second := m.Open(t.Context()), m.Open(t.Context())
	give, err := first.Detach(8)
	if err != nil || m.held != 8 || first.held != 0 {
		t.Fatalf("%d held, %v", m.held, err)
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
	give()
	if err := <-took; err != nil || m.held != 5 {
		t.Errorf("%d held, %v", m.held, err)
	}
	give = second.Leave(3)
	second.Close()
	first.Close()
	if m.held != 3 {
		t.Errorf("%d held after the tasks", m.held)
	}
	give()
	if m.held != 0 {
		t.Errorf("%d held at the end", m.held)
	}
}

// TestMemoryDetached checks that a task waits for bytes that one before it has detached, though that one has ended and no task is left
// before it, and that a task which comes before these bytes does not.
func TestMemoryDetached(t *testing.T) {
	m := NewMemory(10)
	place := InOrder(3)
	tasks := make([]*Task, 3)
	for i := range tasks {
		tasks[i] = m.Open(place(t.Context(), i))
	}
	give, err := tasks[1].Detach(10)
	if err != nil {
		t.Fatal(err)
	}
	tasks[1].Close()
	if err := tasks[0].Take(5); err != nil {
		t.Fatal(err)
	}
	tasks[0].Close()
	if m.try(tasks[2], 1) == nil {
		t.Error("the last task did not wait for the detached bytes")
	}
	give()
	if m.try(tasks[2], 100) != nil {
		t.Error("the last task waits")
	}
	tasks[2].Close()
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
