package main

import (
	"os"
	"runtime/debug"
)

// perWorker is the memory that a worker may take before the collector works
// harder, in bytes. The largest kernels, of 27 MB of BTF, need half of it.
const perWorker = 64 << 20

// growth is how much, in percent of what is in use, is allocated between two
// collections as long as the limit is far. What a run keeps is small, and
// collections of a small heap come often: a tenth of the CPU time went there.
const growth = 400

// limitMemory keeps the peak in proportion to the workers, and lets the
// collector rest below that. A user's GOMEMLIMIT and GOGC count instead.
func limitMemory(jobs int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(max(jobs, 2)) * perWorker)
	}
}
