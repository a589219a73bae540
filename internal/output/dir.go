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
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// File is one file of a directory.
type File struct {
	Name string // path inside the directory, with slashes
	Data []byte
}

// Result describes what WriteDir did besides writing files.
type Result struct {
	Removed int     // files of an earlier run
	Foreign Foreign // files that it left alone, because btfgen did not write them
}

// WriteDir makes the directory at path, with those above it, one unit of the files: those that an earlier call wrote and
// this one does not are removed. Names must be distinct, have levels that [kernel.CheckName] takes, and end in .btf. A list of them, with
// what made says of them, goes beside them as [ListName]. Files that are not in the list of the directory are left
// alone; it fails if one is in the way, and if there is no list but BTF. If it fails, the directory is as it was;
// where a file cannot be put in its place is found out before any is. It locks the directory, see [Lock].
func WriteDir(ctx context.Context, path string, files []File, made json.RawMessage) (res Result, err error) {
	next := &List{Made: made}
	for _, f := range files {
		if err := CheckName(f.Name); err != nil {
			return res, fmt.Errorf("%s: %w", path, err)
		}
		next.Files = append(next.Files, f.Name)
	}
	slices.Sort(next.Files)
	list, err := next.encode()
	if err != nil {
		return res, err
	}
	p, err := find(filepath.Clean(path))
	if err != nil {
		return res, err
	}
	if p.old != nil && !p.old.IsDir() {
		return res, named(path, errNotDir)
	}
	inside := p.dir() // of the temporary directory
	if p.old != nil {
		inside = p.real
	}
	if err := os.MkdirAll(filepath.Clean(inside), 0o777); err != nil {
		return res, named(path, err)
	}
	ctx, unlock, err := Lock(ctx, path, nil)
	if err != nil {
		return res, err
	}
	defer unlock()
	if p, err = find(filepath.Clean(path)); err != nil { // another run may have made the directory
		return res, err
	}
	if inside = p.dir(); p.old != nil {
		inside = p.real
	}
	clean(inside)
	if p.old != nil {
		if res, err = replaceable(ctx, p.path, next); err != nil {
			return res, err
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
		return res, t.appear(&p)
	}
	if err := makeDirs(p.real, files); err != nil {
		return res, err
	}
	return res, t.moveInto(p.real)
}

// replaceable returns an error if a directory cannot become what its next list has, and what is to be res if it can.
func replaceable(ctx context.Context, dir string, next *List) (res Result, err error) {
	if err := CheckDir(ctx, dir); err != nil {
		return res, err
	}
	now, err := ReadList(ctx, dir)
	if err != nil {
		return res, err
	}
	for _, name := range next.Files {
		if err := checkPlace(dir, name); err != nil {
			return res, err
		}
		at := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Lstat(at); err == nil && !now.has(name) {
			return res, fmt.Errorf("%s: is in the way: btfgen did not write it", at)
		}
	}
	if err := checkPlace(dir, ListName); err != nil {
		return res, err
	}
	for _, name := range now.stale(next) {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Lstat(at); err == nil {
			if err := writable(filepath.Dir(at)); err != nil {
				return res, named(at, err)
			}
			res.Removed++
		}
	}
	res.Foreign, err = findForeign(ctx, dir, now, next)
	return res, err
}

// stage writes files into a temporary directory for the one that errors call path, and all of it to disk.
func (t *temporary) stage(ctx context.Context, path string, files []File) error {
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := filepath.FromSlash(f.Name)
		p := place{path: filepath.Join(path, name)}
		at := filepath.Join(t.path, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			return named(p.path, err)
		}
		out, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return named(p.path, err)
		}
		_, err = out.Write(f.Data)
		if err == nil && !syncsAll {
			err = out.Sync()
		}
		if err = errors.Join(err, out.Close()); err != nil {
			return named(p.path, err)
		}
	}
	return named(path, syncAll(t.file))
}

// appear renames a temporary directory to what was not there.
func (t *temporary) appear(p *place) error {
	gate.RLock()
	defer gate.RUnlock()
	if err := os.Rename(t.path, p.real); err != nil {
		return named(p.path, err)
	}
	return named(p.path, syncDir(p.dir()))
}

// checkPlace returns an error if a file could not be put in its place in the directory.
func checkPlace(dir, name string) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	p, err := findIn(dir, name)
	if errors.Is(err, syscall.ENOTDIR) {
		for up := filepath.Dir(path); ; up = filepath.Dir(up) { // which one is it?
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

// check returns an error if what is at the place cannot be replaced.
func (p *place) check() error {
	switch {
	case p.old != nil && p.old.IsDir():
		return named(p.path, errIsDir)
	case p.old != nil && !p.old.Mode().IsRegular():
		return named(p.path, errNoFile)
	}
	dir := filepath.Clean(p.dir())
	if err := writable(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return named(p.path, err)
	}
	return nil
}

// makeDirs makes the directories that files need, or none.
func makeDirs(dir string, files []File) error {
	var made []string
	for _, f := range files {
		at := dir
		for _, part := range strings.Split(filepath.Dir(filepath.FromSlash(f.Name)), string(filepath.Separator)) {
			at = filepath.Join(at, part)
			err := os.Mkdir(at, 0o777)
			if err == nil {
				made = append(made, at)
			} else if !errors.Is(err, fs.ErrExist) {
				for i := range made {
					os.Remove(made[len(made)-1-i])
				}
				return named(at, err)
			}
		}
	}
	return nil
}

// moveInto moves the files of a temporary directory into one that is there.
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

// moveAll moves the files below one directory to the same names below another, and removes what the list there has
// and the one that comes with them has not. The list moves last: until then it can all be done again.
func moveAll(from, to string) error {
	now, err := readList(context.Background(), to) // it is moved in no time
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
		return p.take(filepath.Join(from, name))
	}
	err = walk(from, func(name string) error {
		if name == ListName {
			return nil
		}
		return move(name)
	})
	if err == nil {
		err = syncDirs(dirs)
	}
	if err != nil || next == nil {
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

// walk calls do with the names of the files below a directory.
func walk(dir string, do func(name string) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return do(name)
	})
}

// Moving returns, by their names with slashes, the files that are certain to get to their places in a directory but
// may not be there yet, and where they are.
func Moving(dir string) (map[string]string, error) {
	at := make(map[string]string)
	for _, from := range leftovers(dir, moving) {
		if err := walk(from, func(name string) error {
			at[filepath.ToSlash(name)] = filepath.Join(from, name)
			return nil
		}); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return at, nil
}

// Dir is a directory that files are put into one after the other. It is safe for concurrent use, but not for
// one name at a time.
type Dir struct {
	path string

	mu      sync.Mutex
	tmp     *temporary // made for the first file
	n       int        // files so far
	touched map[string]bool
}

// OpenDir returns the directory at path, which is made for the first file. The caller closes it.
func OpenDir(path string) *Dir {
	clean(path)
	return &Dir{path: path, touched: make(map[string]bool)}
}

// Path returns the path of a file of the directory, by its name.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, filepath.FromSlash(name)) }

// Check returns an error if the file of a name could not be put in its place.
func (d *Dir) Check(name string) error { return checkPlace(d.path, name) }

// Put creates or replaces a file as [WriteFile] does. Its name is a local path with slashes; missing
// directories are made.
func (d *Dir) Put(name string, write func(io.Writer) error) error {
	p, err := findIn(d.path, name)
	if err != nil {
		return err
	}
	if err := p.check(); err != nil {
		return err
	}
	at, err := d.next(p.dir())
	if err != nil {
		return named(p.path, err)
	}
	defer os.Remove(at)
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, p.perm())
	if err != nil {
		return named(p.path, err)
	}
	defer f.Close()
	if err := p.fill(f, write); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Clean(p.dir()), 0o777); err != nil {
		return named(p.path, err)
	}
	gate.RLock()
	defer gate.RUnlock()
	return p.take(at)
}

// next returns a new name for a file that will go to dir.
func (d *Dir) next(dir string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tmp == nil {
		if err := os.MkdirAll(d.path, 0o777); err != nil {
			return "", err
		}
		var err error
		if d.tmp, err = createDir(d.path); err != nil {
			return "", err
		}
	}
	d.n++
	d.touched[dir] = true
	return filepath.Join(d.tmp.path, strconv.Itoa(d.n)), nil
}

// Remove removes a file that has been put. That it is not there is no error.
func (d *Dir) Remove(name string) error {
	path := d.Path(name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return named(path, err)
	}
	return nil
}

// Close ends the use of the directory, and has all that was done to it on disk.
func (d *Dir) Close() error {
	if d.tmp == nil {
		return nil
	}
	d.tmp.remove()
	return syncDirs(d.touched)
}
