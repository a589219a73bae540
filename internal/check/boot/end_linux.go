// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"os/exec"
	"syscall"
)

// endWithUs makes a process end with the thread that starts it.
func endWithUs(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
