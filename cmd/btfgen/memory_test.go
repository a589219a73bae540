// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestUnlimit checks that a limit stays until the live heap is too large for it.
func TestUnlimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	const limit = 256 << 20
	debug.SetMemoryLimit(limit)
	unlimit(limit)
	// Cleanups run some time after the collection.
	for range 3 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	if got := debug.SetMemoryLimit(-1); got != limit {
		t.Fatalf("limit %d with little in use, want %d", got, int64(limit))
	}
	held := make([]byte, limit)
	for range 1000 {
		runtime.GC()
		if debug.SetMemoryLimit(-1) == math.MaxInt64 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	runtime.KeepAlive(held)
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("limit %d with as much in use", got)
	}
}
