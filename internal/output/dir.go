// SPDX-License-Identifier: Apache-2.0

package output

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// File is one file of a directory.
type File struct {
	Name string // relative path with slashes
	Data []byte
}

// Result is what WriteDir did.
type Result struct {
	Size    int64   // bytes of the files
	Removed int     // files of an earlier run
	Foreign Foreign // files that it left alone because btfgen did not write them
}

// WriteDir makes the files the content of the directory at path, which it creates with its parents. It removes files that an
// earlier call wrote and that are not among these. Names must be distinct and satisfy [CheckName]. The list of the directory,
// [ListName], also has made. Files that are not in the list are left alone; WriteDir fails if one of them is in the way, or if
// the directory has BTF but no list. After an error the directory has not changed. WriteDir locks it, see [Lock].
func WriteDir(ctx context.Context, path string, files []File, made json.RawMessage) (res Result, err error) {
	next := &List{Made: made}
	for _, f := range files {
		if err := CheckName(f.Name); err != nil {
			return res, fmt.Errorf("%s: %w", path, err)
		}
		next.Files = append(next.Files, f.Name)
		res.Size += int64(len(f.Data))
	}
	slices.Sort(next.Files)
	list, err := next.encode()
	if err != nil {
		return res, err
	}
	// target returns the place of the directory, and where temporary ones go: into it or, if it does not exist, beside it.
	target := func() (p place, inside string, err error) {
		if p, err = find(filepath.Clean(path)); err == nil && p.old != nil && !p.old.IsDir() {
			err = named(path, errNotDir)
		}
		if p.old == nil {
			return p, p.dir(), err
		}
		return p, p.real, err
	}
	_, inside, err := target()
	if err != nil {
		return res, err
	}
	if err := os.MkdirAll(filepath.Clean(inside), 0o777); err != nil {
		return res, named(path, err)
	}
	ctx, unlock, err := Lock(ctx, path, nil)
	if err != nil {
		return res, err
	}
	defer unlock()
	p, inside, err := target() // again, because another run may have created the directory
	if err != nil {
		return res, err
	}
	clean(inside)
	if p.old != nil {
		if res.Removed, err = replaceable(ctx, p.path, next); err != nil {
			return Result{}, err
		}
	}
	t, err := createDir(inside)
	if err != nil {
		return res, named(path, err)
	}
	defer t.remove()
	files = append(slices.Clone(files), File{ListName, list})
	if err := t.stage(ctx, p.path, files); err != nil {
		return res, err
	}
	if p.old == nil {
		if err := p.move(t.path); err != nil {
			return res, err
		}
		return res, named(p.path, syncDir(p.dir()))
	}
	if err := makeDirs(p.real, files); err != nil {
		return res, err
	}
	if err := t.moveInto(p.real); err != nil {
		return res, err
	}
	res.Foreign, err = FindForeign(context.WithoutCancel(ctx), p.path)
	return res, err
}

// replaceable returns an error if the content of a directory cannot be replaced by what is in the next list. Otherwise it returns
// how many files will be removed.
func replaceable(ctx context.Context, dir string, next *List) (removed int, err error) {
	if err := CheckDir(ctx, dir); err != nil {
		return 0, err
	}
	now, err := ReadList(ctx, dir)
	if err != nil {
		return 0, err
	}
	for _, name := range append(slices.Clone(next.Files), ListName) {
		if err := checkPlace(dir, name); err != nil {
			return 0, err
		}
		at := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Lstat(at); err == nil && !now.has(name) && name != ListName {
			return 0, fmt.Errorf("%s: is in the way: btfgen did not write it", at)
		}
	}
	for _, name := range now.stale(next) {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Lstat(at); err == nil {
			if err := writable(filepath.Dir(at)); err != nil {
				return 0, named(at, err)
			}
			removed++
		}
	}
	return removed, nil
}

// stage writes files to a temporary directory, which replaces path, and syncs it.
func (t *temporary) stage(ctx context.Context, path string, files []File) error {
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := filepath.FromSlash(f.Name)
		at := filepath.Join(t.path, name)
		err := os.MkdirAll(filepath.Dir(at), 0o777)
		if err == nil {
			err = writeNew(at, f.Data)
		}
		if err != nil {
			return named(filepath.Join(path, name), err)
		}
	}
	return named(path, syncAll(t.file))
}

// writeNew writes a new file. It syncs it unless syncAll does.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && !syncsAll {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// checkPlace returns an error if a file could not be put in its place in the directory.
func checkPlace(dir, name string) error {
	p, err := findIn(dir, name)
	if errors.Is(err, syscall.ENOTDIR) { // find out which level it is
		for up := filepath.Dir(filepath.Join(dir, filepath.FromSlash(name))); ; up = filepath.Dir(up) {
			if fi, err := os.Stat(up); err == nil && !fi.IsDir() {
				return named(up, errNotDir)
			} else if err == nil || up == filepath.Dir(up) {
				break
			}
		}
	}
	if err != nil {
		return err
	}
	return p.check()
}

// makeDirs creates the directories of files. If it fails, it removes them again.
func makeDirs(dir string, files []File) error {
	var made []string
	for _, f := range files {
		at := dir
		for level := range strings.SplitSeq(path.Dir(f.Name), "/") {
			at = filepath.Join(at, level)
			err := os.Mkdir(at, 0o777)
			if err == nil {
				made = append(made, at)
			} else if !errors.Is(err, fs.ErrExist) {
				for _, d := range slices.Backward(made) {
					os.Remove(d)
				}
				return named(at, err)
			}
		}
	}
	return nil
}

// moveInto moves the files of a temporary directory to an existing one.
func (t *temporary) moveInto(dir string) error {
	gate.RLock()
	defer gate.RUnlock()
	to := strings.TrimSuffix(t.path, making) + moving
	if err := os.Rename(t.path, to); err != nil {
		return named(dir, err)
	}
	t.path = to
	if err := syncDir(dir); err != nil {
		return named(dir, err)
	}
	return moveAll(to, dir)
}

// moveAll moves the files below one directory to another, and then removes files that are only in the old list. The list moves
// last: until then everything can be repeated.
func moveAll(from, to string) error {
	now, err := readList(context.Background(), to)
	if err != nil {
		return err
	}
	next, err := readList(context.Background(), from)
	if err != nil {
		return err
	}
	dirs := make(map[string]bool)
	move := func(name string) error {
		p, err := findIn(to, name)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(to, filepath.Dir(name)), 0o777); err != nil {
			return named(p.path, err)
		}
		dirs[p.dir()] = true
		return p.rename(filepath.Join(from, name))
	}
	names, err := filesIn(from)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != ListName {
			if err := move(name); err != nil {
				return err
			}
		}
	}
	if err := syncDirs(dirs); err != nil || next == nil {
		return err
	}
	if err := removeStale(to, now.stale(next)); err != nil {
		return err
	}
	if err := move(ListName); err != nil {
		return err
	}
	return syncDirs(dirs)
}

// filesIn returns the relative paths of the files below a directory.
func filesIn(dir string) (names []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		names = append(names, name)
		return err
	})
	return names, err
}

// Moving returns the paths of files of a directory that are not in their places yet, by name with slashes. They will be moved
// there in any case.
func Moving(dir string) (map[string]string, error) {
	at := make(map[string]string)
	for _, from := range leftovers(dir, moving) {
		names, err := filesIn(from)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, name := range names {
			at[filepath.ToSlash(name)] = filepath.Join(from, name)
		}
	}
	return at, nil
}

// Dir is a directory to which files are written one after the other. It is safe for concurrent use with different names.
type Dir struct {
	path string

	mu      sync.Mutex
	touched map[string]bool
}

// OpenDir returns the directory at path, which the first Put creates. The caller closes it.
func OpenDir(path string) *Dir {
	clean(path)
	return &Dir{path: path, touched: make(map[string]bool)}
}

// Path returns the path of a file of the directory.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, filepath.FromSlash(name)) }

// Check returns an error if a file could not be put in its place.
func (d *Dir) Check(name string) error { return checkPlace(d.path, name) }

// Put creates or replaces a file as [WriteFile] does. Its name is a local path with slashes; missing directories are created.
func (d *Dir) Put(name string, write func(io.Writer) error) error {
	p, err := findIn(d.path, name)
	if err != nil {
		return err
	}
	if err := p.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Clean(p.dir()), 0o777); err != nil {
		return named(p.path, err)
	}
	d.mu.Lock()
	if !d.touched[p.dir()] {
		d.touched[p.dir()] = true
		clean(p.dir())
	}
	d.mu.Unlock()
	return p.write(write)
}

// Close syncs the directory.
func (d *Dir) Close() error { return syncDirs(d.touched) }
