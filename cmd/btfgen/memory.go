// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// perWorker is the memory per worker in bytes beyond which the garbage collector works harder. The largest kernels, with
// 27 MB of BTF, need half of it.
const perWorker = 64 << 20

// firstGrowth is the value of GOGC until the first collection, which then happens at 48 MiB rather than at 4. Short runs
// need no collection. Early collections took a tenth of the CPU time for 50 objects on 20 kernels.
const firstGrowth = 1200

// collectLate delays the first collection. From then on the heap may grow by percent of its live size. The user's GOGC takes
// precedence.
func collectLate(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(firstGrowth)
		runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, percent)
	}
}

// limitMemory keeps the peak in proportion to the workers. Without a limit the heap may grow to twice its live size.
// The user's GOMEMLIMIT takes precedence.
func limitMemory(workers int) {
	collectLate(100) // Go's default
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(max(workers, 2)) * perWorker)
	}
}

// Commands that keep results for all kernels have little to collect. slowGrowth is their GOGC, and slowLimit the heap size
// in bytes beyond which the collector works harder: the need of 93 objects, three of them with 35,000 records, on 83 kernels.
const (
	slowGrowth = 50
	slowLimit  = 280 << 20
)

// growSlowly keeps the heap at less than 1.5 times its live size from the first collection on, and below slowLimit while an
// eighth of that is free. The user's GOMEMLIMIT takes precedence.
func growSlowly() {
	collectLate(slowGrowth)
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(slowLimit)
		unlimit(slowLimit)
	}
}

// unlimit removes a limit after the first collection that finds too much in use for it. Otherwise the program would do
// little but collect.
func unlimit(limit uint64) {
	runtime.AddCleanup(new([64]byte), func(limit uint64) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		if metrics.Read(live); live[0].Value.Uint64() > limit/9*8 {
			debug.SetMemoryLimit(math.MaxInt64)
			return
		}
		unlimit(limit)
	}, limit)
}
