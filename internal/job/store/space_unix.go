// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package store

import "golang.org/x/sys/unix"

// freeSpace returns the bytes that are free where a folder is.
var freeSpace = func(dir string) (int64, error) {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return int64(min(st.Bavail, 1<<40)) * int64(min(int64(st.Bsize), 1<<20)), err
}
