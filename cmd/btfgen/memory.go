// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// perWorker is the memory that a worker may take before the collector works
// harder, in bytes. The largest kernels, of 27 MB of BTF, need half of it.
const perWorker = 64 << 20

// firstGrowth is the GOGC that counts until the first collection, which so
// comes at 48 MiB rather than at 4. A short run needs none then, even where all
// of a kernel is put together; in small heaps they come often, and took a tenth
// of the CPU time of 50 objects on 20 kernels. In long runs they hardly show.
const firstGrowth = 1200

// limitMemory keeps the peak in proportion to the workers: without a limit the
// heap may grow to twice what is in use. A user's GOMEMLIMIT and GOGC count
// instead.
func limitMemory(jobs int) {
	if os.Getenv("GOGC") == "" {
		usual := debug.SetGCPercent(firstGrowth)
		runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(max(jobs, 2)) * perWorker)
	}
}

// slowGrowth is the GOGC of commands that keep what they know of all kernels, of
// which a collection finds little to free, and slowLimit the memory beyond which
// the collector works harder, in bytes: what 93 objects, three of them with 35,000
// records, need on 83 kernels.
const (
	slowGrowth = 50
	slowLimit  = 280 << 20
)

// growSlowly keeps the heap at less than twice what is in use, and below slowLimit
// as long as that leaves room for an eighth more than is in use. A user's GOGC and
// GOMEMLIMIT count instead.
func growSlowly() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(slowGrowth)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(slowLimit)
		unlimit(slowLimit)
	}
}

// unlimit takes a limit back after the first collection that finds too much in use for it:
// from there on the collector would do little else than collect.
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
