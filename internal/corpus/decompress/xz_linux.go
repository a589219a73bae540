// SPDX-License-Identifier: Apache-2.0

package decompress

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// widenPipe lets more than 64 kB wait in a pipe, so that writer and reader change places less often.
func widenPipe(r io.Reader) {
	f, ok := r.(*os.File)
	if !ok {
		return
	}
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) {
			_, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, 1<<20)
		})
	}
}
