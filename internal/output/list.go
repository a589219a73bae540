// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/output/jsonfile"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// ListName is the name of the file in which WriteDir lists what it wrote to a directory.
const ListName = ".btfgen-tree.json"

// List is the content of a directory's list.
type List struct {
	// Made describes how the files were made.
	Made json.RawMessage `json:"made,omitempty"`
	// Files are the sorted names of the BTF files, with slashes. In JSON, names that are not UTF-8 or have a % are escaped
	// as in a URL.
	Files []string `json:"files"`
}

// encode returns the list as JSON.
func (l *List) encode() ([]byte, error) {
	written := List{l.Made, make([]string, len(l.Files))}
	for i, name := range l.Files {
		if !utf8.ValidString(name) || strings.Contains(name, "%") {
			name = strings.ReplaceAll(url.PathEscape(name), "%2F", "/")
		}
		written.Files[i] = name
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err := enc.Encode(written)
	return b.Bytes(), err
}

// has reports whether the list has a file. A nil list has none.
func (l *List) has(name string) bool {
	if l == nil {
		return false
	}
	_, ok := slices.BinarySearch(l.Files, name)
	return ok
}

// stale returns the files that the next list does not have.
func (l *List) stale(next *List) []string {
	if l == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(l.Files), next.has)
}

var errName = errors.New("not the name of a file with BTF in the directory")

// readList reads the list in a directory, nil if there is none.
func readList(ctx context.Context, dir string) (*List, error) {
	at := filepath.Join(dir, ListName)
	fi, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, nil
	case err != nil:
		return nil, named(at, err)
	case !fi.Mode().IsRegular():
		return nil, named(at, errNoFile)
	}
	l := new(List)
	file := func(d *jsonfile.Decoder) error {
		var name string
		if err := d.Value(&name); err != nil {
			return err
		}
		name, err := url.PathUnescape(name)
		if err != nil || CheckName(name) != nil {
			return errName
		}
		l.Files = append(l.Files, name)
		return nil
	}
	err = jsonfile.Read(ctx, at, limits.ManifestBytes, "a list of files", func(d *jsonfile.Decoder) error {
		return cmp.Or(d.Object(func(field string) error {
			switch field {
			case "made":
				return d.Value(&l.Made)
			case "files":
				return d.Array(limits.EarlierKernels, field, func() error { return file(d) })
			}
			return d.Skip()
		}), d.End())
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(l.Files)
	l.Files = slices.Compact(l.Files)
	return l, nil
}

// CheckName returns an error if a list cannot have the name. Files with such names are never taken for btfgen's own.
func CheckName(name string) error {
	if CheckPath(name) != nil || strings.HasPrefix(name, ".") || strings.Contains(name, "/.") || path.Ext(name) != kernel.FileSuffix {
		return fmt.Errorf("%q: %w", name, errName)
	}
	return nil
}

// CheckPath returns an error if [kernel.CheckName] refuses a level of a name with slashes.
func CheckPath(name string) error {
	for level := range strings.SplitSeq(name, "/") {
		if err := kernel.CheckName(level); err != nil {
			return err
		}
	}
	return nil
}

// lists returns the list in a directory, and the list that a killed run has not moved there yet, if they exist.
func lists(ctx context.Context, dir string) (now, next *List, err error) {
	now, err = readList(ctx, dir)
	for _, from := range leftovers(dir, moving) {
		if err == nil {
			var l *List
			l, err = readList(ctx, from)
			next = cmp.Or(l, next)
		}
	}
	return now, next, err
}

// ReadList returns the list of a directory, or nil. It may have files that are not in their places yet, see [Moving].
func ReadList(ctx context.Context, dir string) (*List, error) {
	now, next, err := lists(ctx, dir)
	if err != nil {
		return nil, err
	}
	return cmp.Or(next, now), nil
}

// Foreign are BTF files in a directory that are not in its list.
type Foreign struct {
	N     int
	First string // the name of the first
}

// String names the first file and counts the others.
func (f Foreign) String() string {
	if f.N == 1 {
		return f.First
	}
	return fmt.Sprintf("%s and %d more", f.First, f.N-1)
}

// FindForeign returns the BTF files in a directory that are not in its list. It skips hidden directories.
func FindForeign(ctx context.Context, dir string) (f Foreign, err error) {
	now, next, err := lists(ctx, dir)
	if err != nil {
		return f, err
	}
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		base := filepath.Base(p)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return named(p, err)
		case p == dir:
			return nil
		case strings.HasPrefix(base, ".") && d.IsDir():
			return fs.SkipDir
		case d.IsDir() || strings.HasPrefix(base, ".") || !strings.HasSuffix(base, kernel.FileSuffix) && !strings.Contains(base, kernel.FileSuffix+"."):
			return nil
		}
		name, err := filepath.Rel(dir, p)
		if name = filepath.ToSlash(name); err == nil && !now.has(name) && !next.has(name) {
			if f.N++; f.N == 1 {
				f.First = name
			}
		}
		return err
	})
	return f, err
}

// CheckDir returns an error if WriteDir would refuse a directory because of its content.
func CheckDir(ctx context.Context, dir string) error {
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return nil
	}
	now, next, err := lists(ctx, dir)
	if err != nil || now != nil || next != nil {
		return err
	}
	f, err := FindForeign(ctx, dir)
	if err == nil && f.N > 0 {
		err = fmt.Errorf("%s: holds BTF that btfgen did not write as one tree: %s: remove it, or name another directory", dir, f)
	}
	return err
}

// removeStale removes files from a directory, and directories that become empty.
func removeStale(dir string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	root, err := os.OpenRoot(dir) // no link leads out of it
	if err != nil {
		return named(dir, err)
	}
	defer root.Close()
	dirs := make(map[string]bool)
	for _, name := range names {
		at := filepath.FromSlash(name)
		if fi, err := root.Lstat(at); err != nil || fi.IsDir() {
			continue
		}
		if err := root.Remove(at); err != nil {
			return named(filepath.Join(dir, at), err)
		}
		up := filepath.Dir(at)
		for up != "." && root.Remove(up) == nil {
			up = filepath.Dir(up)
		}
		dirs[filepath.Join(dir, up)] = true
	}
	return syncDirs(dirs)
}
