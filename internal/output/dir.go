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
	"path/filepath"
	"slices"
)

// Dir is a directory to which files are written one after the other. Names are relative paths with slashes.
type Dir struct {
	path string
	root *os.Root
	made bool // created by OpenDir
}

// OpenDir returns the directory at path, which it creates with its parents. The caller closes it.
func OpenDir(path string) (*Dir, error) {
	path = filepath.Clean(path)
	d, err := openDir(path)
	if err != nil {
		return nil, named(path, err)
	}
	clean(d.path)
	at("opened")
	return d, nil
}

// openDir is OpenDir for a clean path.
func openDir(path string) (*Dir, error) {
	defer pass()()
	_, err := os.Stat(path)
	made := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{path, root, made}
	if made {
		unfinished.Lock()
		defer unfinished.Unlock()
		unfinished.made[d] = true
	}
	return d, nil
}

// Close syncs the directory. It removes one that OpenDir created and that is empty.
func (d *Dir) Close() error {
	err := d.sync()
	d.release()
	return named(d.path, err)
}

// release is Close without syncing.
func (d *Dir) release() {
	if d.made {
		os.Remove(d.path) // fails if it has files
		unfinished.Lock()
		delete(unfinished.made, d)
		unfinished.Unlock()
	}
	d.root.Close()
}

// sync syncs all files and names.
func (d *Dir) sync() error {
	f, err := d.root.Open(".")
	if err != nil {
		return nil // writable, but not readable
	}
	defer f.Close()
	return syncAll(f)
}

// Path returns the path of a file of the directory.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, filepath.FromSlash(name)) }

// place returns the place of a file. It fails if a link leads out of the directory or into the data of a version control system, or if the
// place is not that of a file.
func (d *Dir) place(name string) (p place, err error) {
	p = place{dir: d, name: filepath.FromSlash(name), path: d.Path(name)}
	switch p.old, err = d.root.Stat(p.name); {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case err == nil && p.isDir():
		err = errIsDir
	case err == nil && !p.old.Mode().IsRegular():
		err = errNoFile
	}
	if err == nil {
		err = checkMetadata(d.root, p.name)
	}
	return p, named(p.path, err)
}

// Check returns an error if a file could not be put in its place.
func (d *Dir) Check(name string) error {
	_, err := d.place(name)
	return err
}

// parent creates the directory of a file.
func (d *Dir) parent(name string) error {
	return named(d.Path(name), d.root.MkdirAll(filepath.Dir(filepath.FromSlash(name)), 0o777))
}

// Put creates or replaces a file as [WriteFile] does, with missing directories. It replaces a link, not its target.
func (d *Dir) Put(name string, write func(io.Writer) error) error {
	p, err := d.place(name)
	if err != nil {
		return err
	}
	if err := d.parent(name); err != nil {
		return err
	}
	return p.write(d.path, write)
}

// File is one file of a directory.
type File struct {
	Name string // relative path with slashes
	Data []byte
}

// Result is what WriteDir did.
type Result struct {
	Size    int64 // bytes of the files
	Removed int   // files of an earlier run
}

// WriteDir makes the files the content of the directory at path, which it creates with its parents. It removes files that an
// earlier call wrote and that are not among these. Names must be distinct and satisfy [CheckName]. The list of the directory,
// [ListName], also has made. Files that are not in the list are left alone; WriteDir fails if one of them is in the way, or if
// the directory has BTF but no list. After most errors the directory has not changed; after others, such as missing permission
// to remove a file, its list is incomplete. If other processes may write to the directory, the caller holds its [Lock].
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
	d, err := OpenDir(path)
	if err != nil {
		return res, err
	}
	defer d.release()
	now, err := listToReplace(ctx, d.path)
	if err != nil {
		return res, err
	}
	for _, name := range next.Files {
		if p, err := d.place(name); err != nil {
			return res, err
		} else if p.old != nil && !now.has(name) {
			return res, fmt.Errorf("%s: is in the way: btfgen did not write it", p.path)
		}
	}
	const meanwhile = "incomplete"
	both := &List{Files: slices.Concat(now.Files, next.Files), Incomplete: true}
	files = append(slices.Clone(files), File{meanwhile, both.encode()}, File{ListName, next.encode()})
	t, err := create(d.path, fs.ModeDir|0o777)
	if err != nil {
		return res, named(path, err)
	}
	defer t.remove()
	if err := d.stage(ctx, t.path, files); err != nil {
		return res, err
	}

	at("move")
	defer pass()()
	move := func(from, to string) error {
		p, err := d.place(to)
		if err != nil {
			return err
		}
		if err := d.parent(to); err != nil {
			return err
		}
		return p.rename(filepath.Join(t.path, filepath.FromSlash(from)))
	}
	if err := move(meanwhile, ListName); err != nil {
		return res, err
	}
	if err := syncDir(d.path); err != nil {
		return res, named(path, err)
	}
	for _, name := range next.Files {
		if err := move(name, name); err != nil {
			return res, err
		}
	}
	if res.Removed, err = d.removeAll(slices.DeleteFunc(now.Files, next.has)); err != nil {
		return res, err
	}
	if err := d.sync(); err != nil {
		return res, named(path, err)
	}
	if err := move(ListName, ListName); err != nil {
		return res, err
	}
	return res, named(path, syncDir(d.path))
}

// stage writes files to a temporary directory and syncs them. Errors have the paths of their places.
func (d *Dir) stage(ctx context.Context, dir string, files []File) error {
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		at("stage")
		if err := writeNew(filepath.Join(dir, filepath.FromSlash(f.Name)), f.Data); err != nil {
			return named(d.Path(f.Name), err)
		}
	}
	return named(d.path, d.sync())
}

// writeNew writes a new file, with missing directories. It syncs it unless syncAll does.
func writeNew(path string, data []byte) error {
	defer pass()() // or it would make files again in a directory that Abandon removes
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
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

// removeAll removes files, and directories that become empty. It returns how many files there were.
func (d *Dir) removeAll(names []string) (n int, err error) {
	for _, name := range names {
		path := filepath.FromSlash(name)
		if fi, err := d.root.Lstat(path); err != nil || fi.IsDir() || checkMetadata(d.root, filepath.Dir(path)) != nil {
			continue
		}
		if err := d.root.Remove(path); err != nil {
			return n, named(d.Path(name), err)
		}
		n++
		for path = filepath.Dir(path); path != "." && d.root.Remove(path) == nil; {
			path = filepath.Dir(path)
		}
	}
	return n, nil
}
