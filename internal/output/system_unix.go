// SPDX-License-Identifier: Apache-2.0

//go:build unix && !solaris && !aix

package output

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// locks is set if the system has file locks.
const locks = true

// lock locks a file until it is closed.
func lock(f *os.File) locked {
	switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case err == nil:
		return lockTaken
	case errors.Is(err, syscall.EWOULDBLOCK):
		return lockHeld
	}
	return lockNone
}

// openLock opens or creates a lock file.
func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o666)
}

// openDead opens and locks a temporary. It returns nil if another process has locked it.
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

// chown gives a file the owner and group of another, and reports whether it now has the group.
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

// writable returns an error if no files can be created in a directory.
func writable(dir string) error {
	const write, search = 2, 1
	return syscall.Access(dir, write|search)
}
