// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestAwait wants a process to go on until temporaries are gone, however long that takes, or until another signal.
func TestAwait(t *testing.T) {
	for _, again := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			signals, tidy, ended := make(chan os.Signal, 2), make(chan bool), make(chan bool)
			go func() {
				await(signals, func() { <-tidy })
				close(ended)
			}()
			time.Sleep(time.Hour)
			select {
			case <-ended:
				t.Error("ended before temporaries were gone")
			default:
			}
			if again {
				signals <- syscall.SIGTERM
				<-ended
			}
			close(tidy)
			<-ended
		})
	}
}

// A run that does not react to a signal is ended after the grace period, or at a second signal.
func TestEndOn(t *testing.T) {
	for _, c := range []struct {
		name    string
		signals []time.Duration // times after the start
		want    time.Duration   // time from the first signal to the end
	}{
		{"one", []time.Duration{time.Second}, grace},
		{"two", []time.Duration{time.Second, 20 * time.Millisecond}, 20 * time.Millisecond},
		{"late", []time.Duration{0, time.Hour}, grace},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals, ended := make(chan os.Signal, 2), make(chan signaled, 1)
				ctx := endOn(context.Background(), signals, func(s signaled) { ended <- s })
				if ctx.Err() != nil {
					t.Error("ended before the first signal")
				}
				time.Sleep(c.signals[0])
				signals <- syscall.SIGTERM
				start := time.Now()
				if len(c.signals) > 1 {
					time.AfterFunc(c.signals[1], func() { signals <- syscall.SIGINT })
				}
				<-ctx.Done()
				if took := time.Since(start); took != 0 {
					t.Errorf("the context ended after %v", took)
				}
				if s := <-ended; s.Signal != syscall.SIGTERM || s.status() != 143 || context.Cause(ctx) != error(s) {
					t.Errorf("ended by %v with %d, cause %v", s.Signal, s.status(), context.Cause(ctx))
				}
				if took := time.Since(start); took != c.want {
					t.Errorf("ended after %v, want %v", took, c.want)
				}
			})
		})
	}
}
