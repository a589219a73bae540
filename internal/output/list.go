// SPDX-License-Identifier: Apache-2.0

package output

import (
	"bytes"
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

	"github.com/btfgen/btfgen/internal/jsonfile"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// ListName is the file of a directory that lists what WriteDir wrote there, and so says what belongs together.
const ListName = ".btfgen-tree.json"

// List is what the list of a directory holds.
type List struct {
	// Made is what the writer notes of the making of the files.
	Made json.RawMessage `json:"made,omitempty"`
	// Files are the names of the files with BTF, in order, with slashes. In the file, bytes that are no UTF-8, and
	// %, are as in a URL.
	Files []string `json:"files"`
}

// encode returns the list as it is written.
func (l *List) encode() ([]byte, error) {
	written := List{l.Made, make([]string, len(l.Files))}
	for i, name := range l.Files {
		written.Files[i] = escape(name)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	err := enc.Encode(written)
	return b.Bytes(), err
}

// escape writes bytes that are no UTF-8, which JSON cannot have, as in a URL.
func escape(name string) string {
	if utf8.ValidString(name) && !strings.Contains(name, "%") {
		return name
	}
	var b strings.Builder
	for i, r := range name {
		if _, size := utf8.DecodeRuneInString(name[i:]); r == '%' || r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, "%%%02X", name[i])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// has says whether the list, which may be nil, has a file.
func (l *List) has(name string) bool {
	if l == nil {
		return false
	}
	_, ok := slices.BinarySearch(l.Files, name)
	return ok
}

var errName = errors.New("not the name of a file with BTF in the directory")

// readList reads the list in a directory. There may be none: then it returns nil.
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
	err = jsonfile.Read(ctx, at, limits.ManifestBytes, "a list of files", func(d *jsonfile.Decoder) error {
		err := d.Object(func(field string) error {
			switch field {
			case "made":
				return d.Value(&l.Made)
			case "files":
				return d.Array(limits.EarlierKernels, field, func() error {
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
				})
			}
			return d.Skip()
		})
		if err != nil {
			return err
		}
		return d.End()
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(l.Files)
	l.Files = slices.Compact(l.Files)
	return l, nil
}

// CheckName returns an error if a list cannot have a name: what btfgen did not write must not be taken for its own.
func CheckName(name string) error {
	if CheckPath(name) != nil || strings.HasPrefix(name, ".") || strings.Contains(name, "/.") || path.Ext(name) != kernel.FileSuffix {
		return fmt.Errorf("%q: %w", name, errName)
	}
	return nil
}

// CheckPath returns an error if a file in a directory cannot have a name, which has slashes: [kernel.CheckName] refuses one of its levels.
func CheckPath(name string) error {
	for level := range strings.SplitSeq(name, "/") {
		if err := kernel.CheckName(level); err != nil {
			return err
		}
	}
	return nil
}

// lists returns the list in a directory, and that which a run that was killed had no time to put there. The
// second counts, where there is one.
func lists(ctx context.Context, dir string) (now, next *List, err error) {
	if now, err = readList(ctx, dir); err != nil {
		return nil, nil, err
	}
	for _, from := range leftovers(dir, moving) {
		l, err := readList(ctx, from)
		if err != nil {
			return nil, nil, err
		}
		if l != nil {
			next = l
		}
	}
	return now, next, nil
}

// ReadList returns the list of a directory, nil if it has none. It may name files that are still to be moved
// to their places, see [Moving].
func ReadList(ctx context.Context, dir string) (*List, error) {
	now, next, err := lists(ctx, dir)
	if next != nil {
		return next, err
	}
	return now, err
}

// Foreign are files with BTF in a directory that its list does not have.
type Foreign struct {
	N     int
	First string // the name of the first
}

// String says which they are.
func (f Foreign) String() string {
	switch f.N {
	case 0:
		return "no file"
	case 1:
		return f.First
	}
	return fmt.Sprintf("%s and %d more", f.First, f.N-1)
}

// FindForeign looks for files with BTF in a directory that its list does not have. Hidden directories are
// passed over.
func FindForeign(ctx context.Context, dir string) (Foreign, error) {
	now, next, err := lists(ctx, dir)
	if err != nil {
		return Foreign{}, err
	}
	return findForeign(ctx, dir, now, next)
}

func findForeign(ctx context.Context, dir string, now, next *List) (f Foreign, err error) {
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return named(p, err)
		}
		if d.IsDir() {
			if p != dir && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		if base := d.Name(); strings.HasPrefix(base, ".") || !strings.HasSuffix(base, kernel.FileSuffix) && !strings.Contains(base, kernel.FileSuffix+".") {
			return nil
		}
		name, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		if name = filepath.ToSlash(name); !now.has(name) && !next.has(name) {
			if f.N++; f.N == 1 {
				f.First = name
			}
		}
		return nil
	})
	return f, err
}

// CheckDir returns an error if WriteDir would refuse a directory for what is in it.
func CheckDir(ctx context.Context, dir string) error {
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return nil
	}
	now, next, err := lists(ctx, dir)
	if err != nil || now != nil || next != nil {
		return err
	}
	f, err := findForeign(ctx, dir, nil, nil)
	if err == nil && f.N > 0 {
		err = fmt.Errorf("%s: holds BTF that btfgen did not write as one tree: %s: remove it, or name another directory", dir, f)
	}
	return err
}

// stale returns the files of a list that another one does not have.
func (l *List) stale(next *List) (names []string) {
	if l == nil {
		return nil
	}
	for _, name := range l.Files {
		if !next.has(name) {
			names = append(names, name)
		}
	}
	return names
}

// removeStale removes files from a directory, and directories that are empty then.
func removeStale(dir string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	root, err := os.OpenRoot(dir) // which no link leads out of
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
