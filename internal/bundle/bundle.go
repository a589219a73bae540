// Package bundle writes the minimized BTFs of many kernels as one directory
// tree, one tar file or one native archive, and reads them all. What it writes depends on nothing but the files: no
// clock, no order of arrival. It appears whole or not at all.
package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Format is the form of an output.
type Format int

// The formats.
const (
	Dir    Format = iota // a directory tree
	TarGz                // .tar.gz or .tgz
	TarXz                // .tar.xz
	TarZst               // .tar.zst
)

// suffixes of the formats that are one file.
var suffixes = map[string]Format{
	".tar.gz": TarGz, ".tgz": TarGz,
	".tar.xz": TarXz, ".txz": TarXz,
	".tar.zst": TarZst,
}

// ErrFormat says that a path has the suffix of an archive that cannot be
// written.
var ErrFormat = errors.New("unknown kind of archive (want a directory, .tar.gz, .tar.xz or .tar.zst)")

// FormatOf returns the format that a path asks for by its suffix; without one
// it is a directory.
func FormatOf(path string) (Format, error) {
	for s, f := range suffixes {
		if strings.HasSuffix(path, s) {
			return f, nil
		}
	}
	base := filepath.Base(path)
	for _, s := range []string{".tar", ".zip", ".tar.bz2", ".tar.lz4", ".gz", ".xz", ".zst", ".btf"} {
		if strings.HasSuffix(base, s) && !strings.HasSuffix(path, string(filepath.Separator)) {
			return Dir, fmt.Errorf("%s: %w", path, ErrFormat)
		}
	}
	return Dir, nil
}

// File is one file of a bundle.
type File struct {
	Name string // path inside the bundle, with slashes: "debian/12/x86_64/6.1.0-47-amd64.btf"
	Data []byte
}

// Write writes files to path in a format. Names must be distinct relative
// paths without "..". An existing tar file is replaced; into an existing
// directory the files are put one by one, each whole, replacing those of the
// same name.
func Write(path string, format Format, files []File) error {
	files, err := sorted(path, files)
	if err != nil {
		return err
	}
	if format == Dir {
		return writeDir(path, files)
	}
	return WriteFile(path, func(w *os.File) error { return writeTar(w, format, files) })
}

// sorted returns the files by name, after checking the names.
func sorted(path string, files []File) ([]File, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	for i, f := range files {
		if !filepath.IsLocal(f.Name) {
			return nil, fmt.Errorf("%s: name %q leaves the bundle", path, f.Name)
		}
		if i > 0 && files[i-1].Name == f.Name {
			return nil, fmt.Errorf("%s: two files named %q", path, f.Name)
		}
	}
	return files, nil
}

// WriteFile creates or replaces the file at path with what write puts out.
// Until write has succeeded and all is on disk, path stays as it was.
func WriteFile(path string, write func(*os.File) error) (err error) {
	if fi, err := os.Stat(path); err == nil && fi.IsDir() {
		return fmt.Errorf("%s: is a directory", path)
	} else if err == nil && !fi.Mode().IsRegular() {
		return writeThrough(path, write)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("%s: %w", path, cause(err))
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err = write(f); err != nil {
		return err
	}
	if err = errors.Join(f.Chmod(0o666&^umask()), f.Sync(), f.Close(), os.Rename(f.Name(), path)); err != nil {
		return fmt.Errorf("%s: %w", path, cause(err))
	}
	return nil
}

// writeThrough writes to a device or pipe, which cannot be replaced.
func writeThrough(path string, write func(*os.File) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// cause takes the temporary name out of an error.
func cause(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		return le.Err
	}
	return err
}

// writeDir builds the tree beside its place and moves it there at once, or,
// where there is a directory already, file by file.
func writeDir(path string, files []File) (err error) {
	path = filepath.Clean(path)
	parent := filepath.Dir(path)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return err
	}
	fi, err := os.Stat(path)
	exists := err == nil
	if exists && !fi.IsDir() {
		return fmt.Errorf("%s: is not a directory", path)
	}
	if exists {
		parent = path
	}
	tmp, err := os.MkdirTemp(parent, ".btfgen.*.tmp")
	if err != nil {
		return fmt.Errorf("%s: %w", path, cause(err))
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o777&^umask()); err != nil {
		return err
	}
	for _, f := range files {
		p := filepath.Join(tmp, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(p, f.Data, 0o666); err != nil {
			return err
		}
	}
	if !exists {
		return os.Rename(tmp, path)
	}
	for _, f := range files {
		name := filepath.FromSlash(f.Name)
		p := filepath.Join(path, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(tmp, name), p); err != nil {
			return err
		}
	}
	return nil
}
