// SPDX-License-Identifier: Apache-2.0

//go:build unix

package corpus

import (
	"os"

	"golang.org/x/sys/unix"
)

func mapFile(f *os.File, size int) (data []byte, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	ctlErr := conn.Control(func(fd uintptr) {
		data, err = unix.Mmap(int(fd), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
	})
	if ctlErr != nil {
		return nil, ctlErr
	}
	return data, err
}

func unmap(data []byte) { _ = unix.Munmap(data) }
