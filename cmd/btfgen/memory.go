// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime/debug"
)

// perWorker is the memory per worker in bytes beyond which the garbage collector works harder. The largest kernels, with
// 27 MB of BTF, need half of it.
const perWorker = 64 << 20

// limitMemory keeps the peak in proportion to the workers. Without a limit the heap may grow to twice its live size.
// The user's GOMEMLIMIT takes precedence.
func limitMemory(workers int) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(max(workers, 2)) * perWorker)
	}
}

// growSlowly keeps the heap below 1.5 times its live size, for commands that keep results for all kernels and so have little
// to collect. The user's GOGC takes precedence.
func growSlowly() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}
