// SPDX-License-Identifier: Apache-2.0

//go:build unix && !solaris && !aix

package output

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// locks says that the system has locks of files.
const locks = true

// lock takes the lock of a file for as long as it is open.
func lock(f *os.File) locked {
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case err == nil:
		return lockTaken
	case errors.Is(err, syscall.EWOULDBLOCK):
		return lockHeld
	}
	return lockNone
}

// openLock opens the file of a lock, and makes it if need be.
func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o666)
}

// openDead opens a temporary and locks it, if nobody else has. Otherwise it returns nil.
func openDead(path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	if lock(f) != lockTaken {
		f.Close()
		return nil
	}
	return f
}

// chown gives a file the owner and group of another, and reports whether it has the group.
func chown(file string, like fs.FileInfo) bool {
	fi, err := os.Stat(file)
	if err != nil {
		return false
	}
	is, ok1 := fi.Sys().(*syscall.Stat_t)
	want, ok2 := like.Sys().(*syscall.Stat_t)
	if !ok1 || !ok2 {
		return false
	}
	if is.Uid != want.Uid && os.Chown(file, int(want.Uid), int(want.Gid)) == nil {
		return true
	}
	return is.Gid == want.Gid || os.Chown(file, -1, int(want.Gid)) == nil
}

// writable returns an error if files cannot be put into a directory.
func writable(dir string) error {
	const write, search = 2, 1
	return syscall.Access(dir, write|search)
}
