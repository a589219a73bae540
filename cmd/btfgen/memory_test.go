// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestFollowHeap checks that the memory limit grows with the live heap, and so does not make the collector run all the time.
func TestFollowHeap(t *testing.T) {
	was := debug.SetMemoryLimit(-1)
	const least, live = 1 << 20, 100 << 20
	debug.SetMemoryLimit(least)
	followHeap(least, usualGrowth)
	held := make([]byte, live)
	for start := time.Now(); debug.SetMemoryLimit(-1) < 2*live; runtime.GC() {
		if time.Since(start) > time.Minute {
			debug.SetMemoryLimit(was)
			t.Fatalf("limit of %d bytes for a live heap of %d", debug.SetMemoryLimit(-1), live)
		}
	}
	runtime.KeepAlive(held)
}
