// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestFollowHeap checks that the memory limit grows with the live heap, and so does not make the collector run all the time.
func TestFollowHeap(t *testing.T) {
	const least, live = 1 << 20, 100 << 20
	debug.SetMemoryLimit(least)
	followHeap(least, usualGrowth)
	held := make([]byte, live)
	// The limit follows some time after a collection.
	for debug.SetMemoryLimit(-1) < 2*live {
		runtime.GC()
	}
	runtime.KeepAlive(held)
}
