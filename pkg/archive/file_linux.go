// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile returns a file without a name on disk. It needs Linux 3.17 and /proc.
func memoryFile(btf []byte) (*File, error) {
	fd, err := unix.MemfdCreate("kernel.btf", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f, path := os.NewFile(uintptr(fd), "kernel.btf"), fmt.Sprintf("/proc/self/fd/%d", fd)
	if _, err = f.Write(btf); err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &File{path, f.Close}, nil
}
