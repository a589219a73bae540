// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Lock locks the output at path: no other process that locks it reads or replaces it until unlock is called. It is for outputs that
// are read before they are replaced. If another process has the lock, Lock calls waiting once and waits until the lock is free or
// ctx ends. A process must not lock an output twice.
//
// The lock of a file is on a temporary file beside it. With dir the output is a directory; the lock is on itself, and unlock
// removes one that Lock created and that is still empty. A lock ends with the process. For devices and pipes, and on file systems
// without locks, Lock does nothing.
func Lock(ctx context.Context, path string, dir bool, waiting func()) (unlock func(), err error) {
	try := lockFile
	if dir {
		try = lockDir
	}
	for tries := 0; ; tries++ {
		if unlock, err = try(path); unlock != nil || err != nil {
			return unlock, err
		}
		// A process that looks for leftovers may have had the lock at the first try.
		if tries == 1 {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// lockDir creates and locks a directory. It returns nil if another process has locked or removed it.
func lockDir(path string) (unlock func(), err error) {
	d, err := OpenDir(path)
	if err != nil {
		return nil, err
	}
	f, err := d.root.Open(".")
	if err != nil {
		d.release()
		return nil, named(path, err)
	}
	if !owns(f, d.path) { // even if OpenDir made the directory, it is now the other process's
		f.Close()
		d.root.Close()
		return nil, nil
	}
	return func() {
		d.release()
		f.Close()
	}, nil
}

// lockFile locks the file that is or will be at path. It returns nil if another process has locked it.
func lockFile(path string) (unlock func(), err error) {
	p, err := find(path)
	if err != nil || p.special {
		return func() {}, err
	}
	real := Real(path)
	sum := sha256.Sum256([]byte(filepath.Base(real)))
	at := filepath.Join(filepath.Dir(real), fmt.Sprintf("%slock-%x%s", prefix, sum[:8], suffix))
	defer pass()()
	f, err := open(at, os.O_RDONLY|os.O_CREATE|noFollow, 0o666)
	if errors.Is(err, fs.ErrNotExist) { // the file's directory does not exist
		return func() {}, nil
	}
	if err != nil {
		return nil, named(path, err)
	}
	t := own(f, at)
	if t == nil {
		return nil, nil
	}
	return t.remove, nil
}
