// SPDX-License-Identifier: Apache-2.0

package output

import (
	"errors"
	"os"
	"syscall"
)

// syncDir has the names in a directory on disk, where the file system can do that.
func syncDir(dir string) error {
	if dir == "" {
		dir = "."
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil // may be written, but not read
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// syncDirs is syncDir for several. Errors name them.
func syncDirs(dirs map[string]bool) error {
	for dir := range dirs {
		if err := syncDir(dir); err != nil {
			return named(dir, err)
		}
	}
	return nil
}
