// SPDX-License-Identifier: Apache-2.0

// Package bundle writes the minimized BTFs of many kernels as one directory
// tree, one tar file or one native archive, and reads them all. What it writes depends on nothing but the files: no
// clock, no order of arrival. It appears whole or not at all.
package bundle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/output"
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

// File is one file of a bundle, such as debian/12/x86_64/6.1.0-47-amd64.btf.
type File = output.File

// Write writes files to path in a format. Names must be distinct relative
// paths without "..". An existing tar file is replaced; an existing
// directory becomes what the files are, as output.WriteDir has it, with a list that also has made, if that is not nil.
func Write(ctx context.Context, path string, format Format, files []File, made json.RawMessage) (told output.Told, err error) {
	if files, err = sorted(path, files); err != nil {
		return told, err
	}
	if format == Dir {
		return output.WriteDir(ctx, path, files, made)
	}
	return told, output.WriteFile(path, func(w io.Writer) error { return writeTar(w, format, files) })
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
