// SPDX-License-Identifier: Apache-2.0

// Package output writes files atomically. Whatever ends the program, including kill -9 and a full disk, a file is the old one or
// the new one. Errors have the name that the user gave.
//
// # One file
//
// [WriteFile] writes a temporary file .btfgen.*.tmp in the same directory and renames it. The new file gets the mode of the old one
// and, if the system allows it, its owner. A symbolic link stays, and its target is replaced. Hard links to the old file keep the
// old content. Devices and pipes are written directly. Files and directories are synced before a function returns.
//
// # A directory
//
// [WriteDir] first writes all files to a directory .btfgen.*.tmp. If the output does not exist, that directory is renamed, so the
// output appears at once. Otherwise the temporary directory is renamed to .btfgen.*.moving, and then its files are moved one by
// one. If the run is killed in between, the next run moves the rest before anything else; until then [Moving] returns where the
// files are. [Dir] is for files that are written one after the other, each put in its place at once.
//
// WriteDir also writes a list of its files to the directory ([ListName]). The next WriteDir removes files that are in the old list
// but not in the new one, after moving the others and before moving the new list, so that it can be repeated. Only listed files
// are ever removed or replaced. Readers use the list, too ([ReadList]).
//
// # Two runs
//
// A process that reads an output and then replaces it holds its [Lock] meanwhile. WriteDir takes it, because it reads the list.
//
// # Leftovers of killed runs
//
// A process holds a lock (flock) on each .btfgen.* that it makes. The next run that writes to a directory removes those that are
// not locked. Unlike a process ID in the name, a lock ends with the process, and it works for containers that share a directory.
// Systems without locks remove nothing. Readers skip names that begin with a dot.
package output

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// WriteFile creates or replaces the file at path with the output of write. path does not change before write has succeeded and
// everything is on disk. An error of write is returned unchanged; errors of its writer name path.
func WriteFile(path string, write func(io.Writer) error) error {
	p, err := find(path)
	if err != nil {
		return err
	}
	if p.old != nil && p.old.IsDir() {
		return named(path, errIsDir)
	}
	if p.special() {
		return p.writeThrough(write)
	}
	clean(p.dir())
	if err := p.write(write); err != nil {
		return err
	}
	return named(path, syncDir(p.dir()))
}

// CheckFile returns an error if WriteFile would fail at path, as far as this is known before writing.
func CheckFile(path string) error {
	p, err := find(path)
	switch {
	case err != nil:
		return err
	case p.old != nil && p.old.IsDir():
		return named(path, errIsDir)
	case p.special():
		return nil
	}
	return named(path, writable(filepath.Clean(p.dir())))
}

var (
	errIsDir   = errors.New("is a directory")
	errNotDir  = errors.New("is not a directory")
	errNoFile  = errors.New("is not a regular file")
	errOutside = errors.New("leads out of the directory")
)

// place is the place of a file.
type place struct {
	path    string      // in errors
	real    string      // path with links followed in its last element
	old     fs.FileInfo // what exists there, or nil
	through bool        // the path refers to an open file, such as /dev/stdout
}

// find returns the place of a path.
func find(path string) (p place, err error) {
	p = place{path: path, real: path}
	if p.old, err = os.Stat(path); err != nil {
		if p.old = nil; !errors.Is(err, fs.ErrNotExist) {
			return p, named(path, err) // such as a loop of links
		}
	}
	for {
		to, err := os.Readlink(p.real)
		if err != nil {
			return p, nil // not a link
		}
		if p.through = strings.HasPrefix(p.real, "/proc/") || strings.HasPrefix(p.real, "/dev/fd/"); p.through {
			return p, nil
		}
		if !filepath.IsAbs(to) {
			to = p.dir() + to // without Join, which would resolve .. without following links
		}
		p.real = to
	}
}

// findIn returns the place of a name in a directory. It fails if the name or a link leads out of the directory.
func findIn(dir, name string) (place, error) {
	name = filepath.FromSlash(name)
	path := filepath.Join(dir, name)
	if !filepath.IsLocal(name) {
		return place{}, named(path, errOutside)
	}
	root, err := os.OpenRoot(cmp.Or(dir, "."))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return find(path)
	case err != nil:
		return place{}, named(dir, err)
	}
	defer root.Close()
	_, err = root.Stat(name)
	if errno := syscall.Errno(0); err != nil && !errors.As(err, &errno) {
		return place{}, named(path, errOutside)
	}
	return find(path)
}

// Real returns the absolute path of a file with all links followed, whether the file exists or not. Paths with the same real path
// are the same output.
func Real(path string) string {
	p, err := find(path)
	if err != nil {
		return path // it cannot be written
	}
	if real, err := filepath.EvalSymlinks(p.real); err == nil {
		p.real = real
	} else if dir, err := filepath.EvalSymlinks(cmp.Or(p.dir(), ".")); err == nil {
		p.real = filepath.Join(dir, filepath.Base(p.real))
	}
	if abs, err := filepath.Abs(p.real); err == nil {
		return abs
	}
	return p.real
}

// dir returns the directory with a slash at the end, or "" for the current one.
func (p *place) dir() string {
	dir, _ := filepath.Split(p.real)
	return dir
}

// special reports whether the place can only be written directly, or not at all.
func (p *place) special() bool {
	return p.through || p.old != nil && !p.old.Mode().IsRegular()
}

// check returns an error if the content of the place cannot be replaced.
func (p *place) check() error {
	switch {
	case p.old != nil && p.old.IsDir():
		return named(p.path, errIsDir)
	case p.old != nil && !p.old.Mode().IsRegular():
		return named(p.path, errNoFile)
	}
	if err := writable(filepath.Clean(p.dir())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return named(p.path, err)
	}
	return nil
}

// write writes a temporary file beside this place and moves it here.
func (p *place) write(write func(io.Writer) error) error {
	perm := fs.FileMode(0o666)
	if p.old != nil {
		perm = 0o600 // until it gets the old file's mode
	}
	t, err := createFile(p.dir(), perm)
	if err != nil {
		return named(p.path, err)
	}
	defer t.remove()
	if err := write(&writer{t.file, p.path}); err != nil {
		return err
	}
	err = t.file.Sync()
	if !locks { // some systems cannot rename an open file
		err = errors.Join(err, t.file.Close())
	}
	if err != nil {
		return named(p.path, err)
	}
	return p.move(t.path)
}

// move renames a file to this place. After [Abandon] it blocks.
func (p *place) move(file string) error {
	gate.RLock()
	defer gate.RUnlock()
	return p.rename(file)
}

// rename is move for callers that have passed the gate.
func (p *place) rename(file string) error {
	if p.old != nil {
		keepMode(file, p.old)
	}
	return named(p.path, os.Rename(file, p.real))
}

// keepMode gives a file the owner and mode of the old one, if possible. If it cannot keep the group, the new group gets the
// permissions of others.
func keepMode(file string, old fs.FileInfo) {
	perm := old.Mode().Perm()
	if !chown(file, old) {
		perm = perm&^0o070 | perm&0o007<<3
	}
	os.Chmod(file, perm) // if this fails, only the owner can read it
}

// writeThrough writes to a special file.
func (p *place) writeThrough(write func(io.Writer) error) error {
	f, err := os.OpenFile(p.path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return named(p.path, err)
	}
	if err := write(&writer{f, p.path}); err != nil {
		f.Close()
		return err
	}
	return named(p.path, f.Close())
}

// writer writes to a file. Its errors have another path.
type writer struct {
	f    *os.File
	path string
}

func (w *writer) Write(b []byte) (int, error) {
	n, err := w.f.Write(b)
	return n, named(w.path, err)
}

// Counter counts the bytes that it writes.
type Counter struct {
	io.Writer
	N int64
}

func (c *Counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.N += int64(n)
	return n, err
}

// named replaces the operation and the path of an error, which may be that of a temporary file.
func named(path string, err error) error {
	if err == nil {
		return nil
	}
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}
