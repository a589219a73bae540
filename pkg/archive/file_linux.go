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
	f := &File{path: fmt.Sprintf("/proc/self/fd/%d", fd), memory: os.NewFile(uintptr(fd), "kernel.btf")}
	if _, err = f.memory.Write(btf); err == nil {
		_, err = os.Stat(f.path)
	}
	if err != nil {
		f.memory.Close()
		return nil, err
	}
	return f, nil
}
