// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime/debug"
	"sync/atomic"
	"testing"
)

func TestRun(t *testing.T) {
	for _, jobs := range []int{-1, 1, 3, 100} {
		var workers atomic.Int64
		done := make([]atomic.Int64, 20)
		err := Run(t.Context(), jobs, len(done), func() *int {
			workers.Add(1)
			return new(int)
		}, func(_ context.Context, calls *int, i int) error {
			*calls++ // a data race if two goroutines share a worker
			done[i].Add(1)
			return nil
		})
		if want := int64(min(max(jobs, 1), len(done))); err != nil || workers.Load() != want {
			t.Errorf("%d jobs: %d workers, want %d; %v", jobs, workers.Load(), want, err)
		}
		for i := range done {
			if n := done[i].Load(); n != 1 {
				t.Errorf("%d jobs: %d done %d times", jobs, i, n)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	mine := errors.New("mine")
	var calls atomic.Int64
	err := Each(t.Context(), 2, 1000, func(i int) error {
		calls.Add(1)
		if i == 3 {
			return mine
		}
		return nil
	})
	if err != mine || calls.Load() == 1000 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	calls.Store(0)
	err = Each(ctx, 1, 1000, func(int) error {
		calls.Add(1)
		cancel()
		return nil
	})
	if err != context.Canceled || calls.Load() != 1 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

// TestTogether checks that a panic of one goroutine is the caller's, after all have ended.
func TestTogether(t *testing.T) {
	for _, jobs := range []int{-1, 1, 3} {
		var calls atomic.Int64
		Together(jobs, func() { calls.Add(1) })
		if want := int64(max(jobs, 1)); calls.Load() != want {
			t.Errorf("%d jobs: %d calls, want %d", jobs, calls.Load(), want)
		}
		calls.Store(0)
		err := Catch(t.Context(), func() {
			Together(3, func() {
				if calls.Add(1) == int64(max(jobs, 1)) {
					panic("trouble")
				}
			})
		})
		if err == nil || err.Error() != "defect of btfgen: trouble" || calls.Load() != 3 {
			t.Errorf("call %d: %v after %d calls", max(jobs, 1), err, calls.Load())
		}
	}
}

// TestTogetherStack checks that the defect of a goroutine that Together started has the goroutine's stack, and wraps the error that it
// panicked with.
func TestTogetherStack(t *testing.T) {
	err := Catch(t.Context(), func() {
		Together(2, func() {
			if !bytes.Contains(debug.Stack(), []byte("testing.tRunner(")) { // this is not the caller
				panicky()
			}
		})
	})
	var d *Defect
	if !errors.As(err, &d) || !bytes.Contains(d.Stack, []byte("workers.panicky(")) {
		t.Errorf("%v without the stack of the panic:\n%s", err, d.Stack)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "defect of btfgen: unexpected EOF" {
		t.Errorf("error %v", err)
	}
}

//go:noinline
func panicky() { panic(io.ErrUnexpectedEOF) }

// TestPanics checks that a panic is an error of the run.
func TestPanics(t *testing.T) {
	err := Each(t.Context(), 2, 10, func(i int) error {
		if i == 3 {
			panic("trouble")
		}
		return nil
	})
	if err == nil || err.Error() != "defect of btfgen: trouble" {
		t.Errorf("error %v", err)
	}
}
