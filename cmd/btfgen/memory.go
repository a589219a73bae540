// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"runtime/debug"
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
// which a collection finds little to free.
const slowGrowth = 50

// growSlowly keeps the heap at less than twice what is in use. A user's GOGC counts
// instead.
func growSlowly() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(slowGrowth)
	}
}
