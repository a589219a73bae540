// SPDX-License-Identifier: Apache-2.0

// Package output writes files atomically. Whatever ends the program, including kill -9 and a full disk, a file is the old one or
// the new one. Errors have the name that the user gave.
//
// # One file
//
// [WriteFile] writes a temporary file .btfgen.*.tmp in the same directory and renames it. The new file gets the mode of the old one.
// A symbolic link stays, and its target is replaced. Hard links to the old file keep the old content. Devices and pipes are
// written directly. Files and directories are synced before a function returns.
//
// # A directory
//
// [WriteDir] first writes all files to a directory .btfgen.*.tmp in the output, which it creates. Then it moves them to their
// places. A list of the files ([ListName]) says so meanwhile: it has the old and the new names and is incomplete, and readers
// refuse it ([ReadList]). If the run is killed in between, the next WriteDir does everything again. It removes files that are in
// the old list but not in the new one. Only listed files are ever removed or replaced. [Dir] is for files that are written one
// after the other, each put in its place at once. Names and links do not lead out of a directory ([os.Root]).
//
// # Two runs
//
// A process that reads an output and then replaces it holds its [Lock] meanwhile.
//
// # Leftovers of killed runs
//
// A process holds a lock (flock) on each .btfgen.* that it makes. The next run that writes to a directory removes those that are
// not locked. Unlike a process ID in the name, a lock ends with the process, and it works for containers that share a directory.
// On file systems without locks nothing is removed. Readers skip names that begin with a dot.
package output

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// WriteFile creates or replaces the file at path with the output of write. path does not change before write has succeeded and
// everything is on disk. An ELF file is not replaced ([ErrELF]). An error of write is returned unchanged; errors of its writer name path.
func WriteFile(path string, write func(io.Writer) error) error {
	p, err := find(path)
	if err != nil {
		return err
	}
	switch {
	case p.isDir():
		return named(path, errIsDir)
	case p.special:
		return p.writeThrough(write)
	case p.isELF():
		return named(path, ErrELF)
	}
	clean(p.folder())
	if err := p.write(p.folder(), write); err != nil {
		return err
	}
	return named(path, syncDir(p.folder()))
}

// CheckFile returns an error if WriteFile would fail at path, as far as this is known before writing.
func CheckFile(path string) error {
	p, err := find(path)
	switch {
	case err != nil:
		return err
	case p.isDir():
		return named(path, errIsDir)
	case p.special:
		return nil
	case p.isELF():
		return named(path, ErrELF)
	}
	return named(path, writable(filepath.Clean(p.folder())))
}

// ErrELF is wrapped by the error for an output that would replace an ELF file. No output is one, so it is an object or a program
// that the user gave by mistake.
var ErrELF = errors.New("is an ELF file, which btfgen does not replace")

var (
	errIsDir  = errors.New("is a directory")
	errNoFile = errors.New("is not a regular file")
)

// place is the place of a file.
type place struct {
	dir     *Dir        // the file must stay in it; or nil
	name    string      // relative to dir, with the system's separators
	path    string      // the path shown in errors
	real    string      // path with links followed in its last element
	old     fs.FileInfo // the file that exists there, or nil
	special bool        // can only be written directly, such as a device, or an open file that /dev/stdout refers to
}

// find returns the place of a path.
func find(path string) (p place, err error) {
	p = place{path: path, real: path}
	if p.old, err = os.Stat(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, named(path, err) // such as a loop of links
	}
	p.special = err == nil && !p.old.Mode().IsRegular()
	for !p.special {
		to, err := os.Readlink(p.real)
		if err != nil {
			return p, nil // not a link
		}
		if strings.HasPrefix(p.real, "/proc/") || strings.HasPrefix(p.real, "/dev/fd/") {
			p.special = true
		} else if filepath.IsAbs(to) {
			p.real = to
		} else {
			// Join would resolve .. without following links.
			p.real = p.folder() + to
		}
	}
	return p, nil
}

// Inside returns an error if writing to a path, which may be relative to a folder or "-", could change something outside the folder or in the
// data of a version control system. Names with ".." and links that are absolute or lead out are outside, wherever they end. The file and its
// directories need not exist.
func Inside(folder, path string) error {
	if path == "-" {
		return nil
	}
	name := path
	if filepath.IsAbs(path) {
		abs, err := filepath.Abs(folder)
		if err != nil {
			return err
		}
		if name, err = filepath.Rel(abs, path); err != nil {
			return ErrOutside
		}
	}
	if slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "..") || !filepath.IsLocal(name) {
		return ErrOutside
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return ErrOutside
	}
	defer root.Close()
	if _, err := root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return ErrOutside
	}
	return checkMetadata(root, name)
}

func (p *place) isDir() bool { return p.old != nil && p.old.IsDir() }

// isELF reports whether the file that exists is an ELF file.
func (p *place) isELF() bool {
	if p.old == nil {
		return false
	}
	f, err := os.Open(p.path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(elf.ELFMAG))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == elf.ELFMAG
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
	} else if dir, err := filepath.EvalSymlinks(cmp.Or(p.folder(), ".")); err == nil {
		p.real = filepath.Join(dir, filepath.Base(p.real))
	}
	if abs, err := filepath.Abs(p.real); err == nil {
		return abs
	}
	return p.real
}

// folder returns the directory with a slash at the end, or "" for the current one.
func (p *place) folder() string {
	dir, _ := filepath.Split(p.real)
	return dir
}

// write writes a temporary file in a directory of the same file system and moves it here.
func (p *place) write(dir string, write func(io.Writer) error) error {
	perm := fs.FileMode(0o666)
	if p.old != nil {
		perm = 0o600 // until it gets the old file's mode
	}
	t, err := create(dir, perm)
	if err != nil {
		return named(p.path, err)
	}
	defer t.remove()
	if err := write(&writer{t.file, p.path}); err != nil {
		return err
	}
	if err := t.file.Sync(); err != nil {
		return named(p.path, err)
	}
	at("move")
	defer pass()()
	return p.rename(t.path)
}

// rename renames a file to this place. The file gets the mode of the old one. Links that were made meanwhile do not lead out of p.dir. The
// caller has passed the gate.
func (p *place) rename(file string) error {
	chmod, rename, to := os.Chmod, os.Rename, p.real
	if p.dir != nil {
		rel, err := filepath.Rel(p.dir.path, file)
		if err != nil {
			return named(p.path, err)
		}
		chmod, rename, to, file = p.dir.root.Chmod, p.dir.root.Rename, p.name, rel
	}
	if p.old != nil {
		// If chmod fails, only the owner can read the file.
		chmod(file, p.old.Mode().Perm())
	}
	return named(p.path, rename(file, to))
}

// writeThrough writes to a special file.
func (p *place) writeThrough(write func(io.Writer) error) error {
	f, err := os.OpenFile(p.path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return named(p.path, err)
	}
	defer f.Close()
	if err := write(&writer{f, p.path}); err != nil {
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
