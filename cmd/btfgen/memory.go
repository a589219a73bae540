package main

import (
	"os"
	"runtime/debug"
)

// perWorker is the memory that a worker may take before the collector works
// harder, in bytes. The largest kernels, of 27 MB of BTF, need half of it.
const perWorker = 64 << 20

// limitMemory keeps the peak in proportion to the workers: without a limit the
// heap may grow to twice what is in use. A user's GOMEMLIMIT counts instead.
func limitMemory(jobs int) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(max(jobs, 2)) * perWorker)
	}
}
