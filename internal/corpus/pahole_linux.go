// SPDX-License-Identifier: Apache-2.0

package corpus

import "golang.org/x/sys/unix"

// boundMemory limits the memory that a process can map to n bytes, if possible.
func boundMemory(pid int, n uint64) {
	_ = unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: n, Max: n}, nil)
}
