// SPDX-License-Identifier: Apache-2.0

package output

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncsAll says that syncAll does what syncing each file would do. That takes some 6 ms for each of thousands.
const syncsAll = true

// syncAll has all that was written to a directory on disk.
func syncAll(dir *os.File) error { return os.NewSyscallError("sync", unix.Syncfs(int(dir.Fd()))) }
