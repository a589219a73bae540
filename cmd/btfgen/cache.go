// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/btfgen/btfgen/internal/output"
)

// Packages of booted kernels stay in the user's cache, for the next run. Above cachedBytes, the least recently used are removed. Packages
// used within cachedFor stay, as another process may be about to read them.
const (
	cachedBytes = 1_000_000_000
	cachedFor   = time.Hour
)

// prunePackages removes the least recently used packages below a folder until the others have at most limit bytes. It keeps packages used
// after since, and those in a folder locked by a run of Fetch. It returns the bytes that stay. It removes nothing outside of the folder,
// and leaves links and other files alone. Files that it cannot remove stay.
func prunePackages(ctx context.Context, dir string, limit int64, since time.Time) (size int64) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0
	}
	defer root.Close()
	type file struct {
		name string
		size int64
		used time.Time
	}
	var files []file
	fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !slices.Contains([]string{".deb", ".ddeb", ".rpm"}, path.Ext(name)) {
			return nil
		}
		if fi, err := d.Info(); err == nil {
			files = append(files, file{name, fi.Size(), fi.ModTime()})
			size += fi.Size()
		}
		return nil
	})
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name)) })
	for _, f := range files {
		if size <= limit || f.used.After(since) {
			break
		}
		if removeUnused(ctx, root, f.name, since) {
			size -= f.size
		}
	}
	return size
}

// removeUnused removes a file that was not used after since, while its folder is locked. It reports whether it did.
func removeUnused(ctx context.Context, root *os.Root, name string, since time.Time) bool {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	unlock, err := output.Lock(ctx, filepath.Join(root.Name(), filepath.Dir(filepath.FromSlash(name))), true, func() {})
	if err != nil {
		return false
	}
	defer unlock()
	fi, err := root.Lstat(name)
	return err == nil && fi.Mode().IsRegular() && !fi.ModTime().After(since) && root.Remove(name) == nil
}
