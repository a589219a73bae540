// SPDX-License-Identifier: Apache-2.0

package corpus

import "golang.org/x/sys/unix"

// bound limits the memory that a process can map and the sizes of the files that it writes, if possible.
func bound(pid int, memory, size uint64) {
	_ = unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: memory, Max: memory}, nil)
	_ = unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: size}, nil)
}
