// SPDX-License-Identifier: Apache-2.0

//go:build unix

package output

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// noFollow is for opening a temporary that others may have put there: a link is not followed, and a pipe is not waited for.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// open opens or creates a temporary, which is removed or renamed while it is open.
func open(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, perm)
}

// discard removes a temporary and then closes it, so that it has its lock until it is gone.
func discard(f *os.File, path string) {
	os.RemoveAll(path)
	f.Close()
}

// errLocked is the error of lock if another process has locked the file.
const errLocked = syscall.EWOULDBLOCK

// lock locks a file or directory until it is closed.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// writable returns an error if no file can be made in a directory.
func writable(dir string) error {
	const write, search = 2, 1
	return syscall.Access(dir, write|search)
}

// syncDir syncs the names in a directory, if the file system can do that.
func syncDir(dir string) error {
	d, err := os.Open(cmp.Or(dir, "."))
	if err != nil {
		return nil // writable, but not readable
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
