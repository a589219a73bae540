// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// perWorker is the memory per worker in bytes beyond which the garbage collector works harder. The largest kernels, with
// 27 MB of BTF, need half of it.
const perWorker = 64 << 20

// firstGrowth is the value of GOGC until the first collection, which then happens at 60 MiB rather than at 4. Short runs
// need no collection. One took a tenth of the CPU time for 40 objects on 10 kernels.
const firstGrowth = 1500

// limitMemory keeps the peak in proportion to the workers, or to the results if they need more. Without a limit the heap may grow to
// twice its live size in any case. The user's GOMEMLIMIT and GOGC take precedence.
func limitMemory(workers int) { limitGrowth(workers, usualGrowth) }

// usualGrowth is the usual value of GOGC.
const usualGrowth = 100

// packGrowth is for commands that encode .btfc files. Little of their heap has pointers, so collections are cheap.
const packGrowth = 10

// limitGrowth is limitMemory for a heap that grows by so many percent of its live size if it needs more than the workers have.
func limitGrowth(workers, growth int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(firstGrowth)
		runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, usualGrowth)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		least := int64(max(workers, 2)) * perWorker
		debug.SetMemoryLimit(least)
		followHeap(least, growth)
	}
}

// followHeap sets the memory limit after each collection: least, or what the live heap may grow to if that is more. A live heap near the
// limit would make the collector run all the time.
func followHeap(least int64, growth int) {
	runtime.AddCleanup(new([64]byte), func(least int64) {
		var s runtime.MemStats // package runtime/metrics allocates 15 kB when the program starts
		runtime.ReadMemStats(&s)
		debug.SetMemoryLimit(max(least, int64(s.HeapAlloc)/100*int64(100+growth)))
		followHeap(least, growth)
	}, least)
}

// growSlowly keeps the heap below 1.5 times its live size, for commands with little to collect: check keeps results for all kernels, and
// verify the types of each kernel for all objects. The user's GOGC takes precedence.
func growSlowly() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}
