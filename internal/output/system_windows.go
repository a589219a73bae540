// SPDX-License-Identifier: Apache-2.0

package output

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// noFollow is not needed: open does not leave the directory.
const noFollow = 0

// open opens or creates a temporary, which is removed or renamed while it is open. Windows allows that for files that are opened through
// their directory.
func open(path string, flag int, perm fs.FileMode) (*os.File, error) {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.OpenFile(filepath.Base(path), flag, perm)
}

// discard closes a temporary and removes it. Windows keeps a directory that is open.
func discard(f *os.File, path string) {
	f.Close()
	os.RemoveAll(path)
}

// errLocked is the error of lock if another process has locked the file.
const errLocked = windows.ERROR_LOCK_VIOLATION

// lock locks a file until it is closed. It locks a byte far behind the end, since others may not read a locked one. Windows does not lock
// directories.
func lock(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
}

// writable returns an error if a directory does not exist. Whether a file can be made in it is known when it is made.
func writable(dir string) error {
	_, err := os.Stat(dir)
	return err
}

// syncDir does nothing: Windows does not sync names.
func syncDir(string) error { return nil }
