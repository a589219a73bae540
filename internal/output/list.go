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
	// Incomplete is set while a run moves files to their places. Files are then those before the run and those after it.
	Incomplete bool `json:"incomplete,omitempty"`
}

// encode returns the list as JSON.
func (l *List) encode() []byte {
	written := List{l.Made, make([]string, len(l.Files)), l.Incomplete}
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
	if err := enc.Encode(written); err != nil {
		panic(err) // only for an invalid Made
	}
	return b.Bytes()
}

// has reports whether the list, whose files are sorted, has one.
func (l *List) has(name string) bool {
	_, ok := slices.BinarySearch(l.Files, name)
	return ok
}

var errName = errors.New("not the name of a file with BTF in the directory")

// readList reads the list in a directory, which may be incomplete. It returns nil if there is none.
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
	const what = "a list of files"
	if err := jsonfile.Read(ctx, at, limits.ManifestBytes, what, l); err != nil {
		return nil, err
	}
	for i, name := range l.Files {
		if l.Files[i], err = url.PathUnescape(name); err != nil || CheckName(l.Files[i]) != nil {
			return nil, fmt.Errorf("%s: not %s: files, number %d: %w", at, what, i+1, errName)
		}
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

// ErrIncomplete is the error of ReadList for an incomplete list.
var ErrIncomplete = errors.New("the run that wrote this directory was interrupted; run it again")

// ReadList returns the list of a directory, or nil. It refuses an incomplete one with ErrIncomplete.
func ReadList(ctx context.Context, dir string) (*List, error) {
	l, err := readList(ctx, dir)
	if err == nil && l != nil && l.Incomplete {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, ListName), ErrIncomplete)
	}
	return l, err
}

// CheckDir returns an error if WriteDir would refuse a directory because of its content.
func CheckDir(ctx context.Context, dir string) error {
	_, err := listToReplace(ctx, dir)
	return err
}

// listToReplace returns the list of a directory that WriteDir may replace, or an empty one. It refuses a directory with BTF but no
// list. Hidden directories do not matter.
func listToReplace(ctx context.Context, dir string) (*List, error) {
	if l, err := readList(ctx, dir); l != nil || err != nil {
		return l, err
	}
	return new(List), filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		base := filepath.Base(p)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case p == dir && (err == nil || errors.Is(err, fs.ErrNotExist)):
			return nil
		case err != nil:
			return named(p, err)
		case strings.HasPrefix(base, ".") && d.IsDir():
			return fs.SkipDir
		case d.IsDir() || strings.HasPrefix(base, ".") || !strings.HasSuffix(base, kernel.FileSuffix) && !strings.Contains(base, kernel.FileSuffix+"."):
			return nil
		}
		name, _ := filepath.Rel(dir, p)
		return fmt.Errorf("%s: holds BTF that btfgen did not write as one tree: %s: remove it, or name another directory", dir, name)
	})
}
