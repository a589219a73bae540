// SPDX-License-Identifier: Apache-2.0

package corpus

import "golang.org/x/sys/unix"

// boundMemory lets a process map no more than n bytes. Where that cannot be, it can map more.
func boundMemory(pid int, n uint64) {
	_ = unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: n, Max: n}, nil)
}
