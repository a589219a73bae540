// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// apart gives a program a process group of its own, so that ^C goes to btfgen alone, and makes it get the signal last when btfgen ends.
func apart(cmd *exec.Cmd, last syscall.Signal) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: last}
}

// limit limits the memory that a process can map and the sizes of the files that it writes, if possible.
func limit(pid int, memory, size uint64) {
	if memory > 0 {
		_ = unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: memory, Max: memory}, nil)
	}
	if size > 0 {
		_ = unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: size}, nil)
	}
}
