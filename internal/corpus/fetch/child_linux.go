// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"os/exec"
	"syscall"
)

// endWithParent lets a client end when btfgen is killed, so that it does not go on to download.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
