// SPDX-License-Identifier: Apache-2.0

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

// WriteFile creates or replaces the file at path with what write puts out. Until write has
// succeeded and all is on disk, path stays as it was. An error of write is returned as it is; that of the writer that
// it gets names path.
func WriteFile(path string, write func(io.Writer) error) error {
	p, err := find(path)
	if err != nil {
		return err
	}
	switch {
	case p.old != nil && p.old.IsDir():
		return named(path, errIsDir)
	case p.through || p.old != nil && !p.old.Mode().IsRegular():
		return p.writeThrough(write)
	}
	clean(p.dir())
	t, err := createFile(p.dir(), p.perm())
	if err != nil {
		return named(path, err)
	}
	defer t.remove()
	if err := p.fill(t.file, write); err != nil {
		return err
	}
	if err := t.put(&p); err != nil {
		return err
	}
	return named(path, syncDir(p.dir()))
}

// CheckFile returns an error if WriteFile can get no file to path, as far as that can be told before.
func CheckFile(path string) error {
	p, err := find(path)
	switch {
	case err != nil:
		return err
	case p.old != nil && p.old.IsDir():
		return named(path, errIsDir)
	case p.through || p.old != nil && !p.old.Mode().IsRegular():
		return nil
	}
	return named(path, writable(filepath.Clean(p.dir())))
}

var (
	errIsDir  = errors.New("is a directory")
	errNotDir = errors.New("is not a directory")
	errNoFile = errors.New("is not a regular file")
)

// place is where a file goes.
type place struct {
	path    string      // as errors call it
	real    string      // path with the last links followed: what is replaced
	old     fs.FileInfo // what is there, or nil
	through bool        // the path names an open file, such as /dev/stdout, not a name on disk
}

// find returns the place that a path means.
func find(path string) (p place, err error) {
	p = place{path: path, real: path}
	if p.old, err = os.Stat(path); err != nil {
		if p.old = nil; !errors.Is(err, fs.ErrNotExist) {
			return p, named(path, err) // links without end, or such as the system does not want followed
		}
	}
	for {
		to, err := os.Readlink(p.real)
		if err != nil {
			return p, nil // no link
		}
		if p.through = strings.HasPrefix(p.real, "/proc/") || strings.HasPrefix(p.real, "/dev/fd/"); p.through {
			return p, nil
		}
		if !filepath.IsAbs(to) {
			dir, _ := filepath.Split(p.real) // not Dir, which takes a .. for the parent of a link's name
			to = dir + to
		}
		p.real = to
	}
}

var errOutside = errors.New("leads out of the directory")

// findIn returns the place that a name means in a directory. It is an error if the name or a link on the way leads out of the directory.
func findIn(dir, name string) (place, error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if !filepath.IsLocal(filepath.FromSlash(name)) {
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
	_, err = root.Stat(filepath.FromSlash(name))
	if errno := syscall.Errno(0); err != nil && !errors.As(err, &errno) {
		return place{}, named(path, errOutside)
	}
	return find(path)
}

// Real returns the absolute path that a path leads to, whether anything is there or not. Two paths with
// one real path are one output.
func Real(path string) string {
	p, err := find(path)
	if err != nil {
		return path // nothing can be written there
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

func (p *place) dir() string {
	dir, _ := filepath.Split(p.real)
	return dir
}

// perm is the mode for a new file at this place, before the umask: that of what it replaces is set
// at the end.
func (p *place) perm() fs.FileMode {
	if p.old != nil {
		return 0o600
	}
	return 0o666
}

// fill writes a file that is to come to this place, to disk.
func (p *place) fill(f *os.File, write func(io.Writer) error) error {
	if err := write(&writer{f, p.path}); err != nil {
		return err
	}
	err := f.Sync()
	if !locks { // nothing depends on its being open, and some systems move no open file
		err = errors.Join(err, f.Close())
	}
	return named(p.path, err)
}

// take renames a file to this place.
func (p *place) take(file string) error {
	if p.old != nil {
		keep(file, p.old)
	}
	err := os.Rename(file, p.real)
	if errors.Is(err, syscall.EXDEV) { // a link, or what is mounted there, leads to another file system
		err = p.takeCopy(file)
	}
	return named(p.path, err)
}

// takeCopy is take for a file of another file system.
func (p *place) takeCopy(file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	t, err := newFile(p.dir(), p.perm())
	if err != nil {
		return err
	}
	defer t.remove()
	if err := p.fill(t.file, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	}); err != nil {
		return err
	}
	if p.old != nil {
		keep(t.path, p.old)
	}
	return os.Rename(t.path, p.real)
}

// keep gives a file the owner and mode of the one that it is to replace, as far as it may. The group
// of one whose own could not be kept may do what everybody may.
func keep(file string, old fs.FileInfo) {
	perm := old.Mode().Perm()
	if !chown(file, old) {
		perm = perm&^0o070 | perm&0o007<<3
	}
	os.Chmod(file, perm) // without, only we may read it
}

// writeThrough writes to what cannot be replaced.
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

// writer writes to a file and calls it, in errors, by another name.
type writer struct {
	f    *os.File
	path string
}

func (w *writer) Write(b []byte) (int, error) {
	n, err := w.f.Write(b)
	return n, named(w.path, err)
}

// named makes an error one of the output at path: it takes out the operation and the name, which may be
// that of a temporary file.
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
