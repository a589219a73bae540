// SPDX-License-Identifier: Apache-2.0

// Package bundle writes the minimized BTFs of many kernels as a directory, a tar file or a native archive, and reads them all. The
// output depends on the files alone, not on time or order. It appears whole or not at all.
package bundle

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/archive"
)

// Format is the format of an output.
type Format int

// The formats.
const (
	Dir    Format = iota // a directory tree
	TarGz                // .tar.gz or .tgz
	TarXz                // .tar.xz or .txz
	TarZst               // .tar.zst
	Native               // a native archive, .btfa
)

// NativeSuffix is the suffix of native archives.
const NativeSuffix = ".btfa"

// suffixes are all suffixes of formats that are one file.
var suffixes = map[string]Format{
	".tar.gz": TarGz, ".tgz": TarGz,
	".tar.xz": TarXz, ".txz": TarXz,
	".tar.zst": TarZst, NativeSuffix: Native,
}

// FormatOf returns the format for the suffix of a path. A path without suffix, or of an existing directory, is a directory.
func FormatOf(path string) (Format, error) {
	for s, f := range suffixes {
		if strings.HasSuffix(path, s) {
			return f, nil
		}
	}
	suffix := filepath.Ext(path)
	if fi, err := os.Stat(path); suffix == "" || suffix == filepath.Base(path) || err == nil && fi.IsDir() {
		return Dir, nil
	}
	return Dir, fmt.Errorf("unknown suffix %s (want .btfa, .tar.gz, .tar.xz or .tar.zst, or a directory: a name that ends with / or has no suffix)", suffix)
}

// File is one file of a bundle, such as debian/12/x86_64/6.1.0-47-amd64.btf.
type File = output.File

// Output is a place for the minimized BTFs of kernels, and a format.
type Output struct {
	Path   string
	Format Format
	Layout *Layout // names the files of Dir and tar files; nil is BTFHub's
}

// HasInfo reports whether the output stores an archive.Info.
func (o *Output) HasInfo() bool { return o.Format == Native || o.Format == Dir }

// Check returns an error if Write would refuse the path because of its present content, as far as this is known before writing.
func (o *Output) Check(ctx context.Context) error {
	if o.Format != Dir {
		return output.CheckFile(o.Path)
	}
	return output.CheckDir(ctx, o.Path)
}

// Write writes the kernels, in any order, and info if HasInfo. It writes nothing if the output is too large for Read.
func (o *Output) Write(ctx context.Context, info archive.Info, kernels []archive.Kernel) (res output.Result, err error) {
	if o.Format == Native {
		var b bytes.Buffer
		if err := archive.Write(ctx, &b, info, kernels); err != nil {
			return res, fmt.Errorf("%s: %w", o.Path, err)
		}
		return o.writeFile(func(w io.Writer) error {
			_, err := w.Write(b.Bytes())
			return err
		})
	}
	files, err := cmp.Or(o.Layout, Layouts[0]).files(o.Format, kernels)
	if err != nil {
		return res, fmt.Errorf("%s: %w", o.Path, err)
	}
	total := int64(0)
	for _, f := range files {
		total += int64(len(f.Data))
	}
	if total > limits.BundleBytes { // an archive has equal BTFs only once
		return res, fmt.Errorf("%s: %s would take %s, more than the limit of %d MiB: choose fewer kernels, or write a %s",
			o.Path, words.Plural(len(kernels), "kernel"), words.Bytes(total), limits.BundleBytes>>20, NativeSuffix)
	}
	var made []byte
	if o.HasInfo() {
		if info, err = info.Canonical(kernels); err != nil {
			return res, fmt.Errorf("%s: %w", o.Path, err)
		}
		if made, err = json.Marshal(info); err != nil {
			return res, err
		}
	}
	return o.write(ctx, files, made)
}

// write writes files with distinct local names. An existing tar file is replaced; output.WriteDir describes what happens to a
// directory.
func (o *Output) write(ctx context.Context, files []File, made json.RawMessage) (res output.Result, err error) {
	if files, err = sorted(o.Path, files); err != nil {
		return res, err
	}
	if o.Format == Dir {
		return output.WriteDir(ctx, o.Path, files, made)
	}
	for _, f := range files {
		if n := len(bccPrefix) + len(f.Name); o.tools() && n > maxBCCName {
			return res, fmt.Errorf("%s: %s: name has %d bytes, bcc reads up to %d", o.Path, f.Name, n, maxBCCName)
		}
	}
	return o.writeFile(func(w io.Writer) error { return o.writeTar(w, files) })
}

// writeFile writes an output that is one file.
func (o *Output) writeFile(write func(io.Writer) error) (res output.Result, err error) {
	if err := output.WriteFile(o.Path, write); err != nil {
		return res, err
	}
	fi, err := os.Stat(o.Path)
	if err == nil {
		res.Size = fi.Size()
	}
	return res, err
}

// sorted checks the names of files and sorts them.
func sorted(path string, files []File) ([]File, error) {
	files = slices.Clone(files)
	sort.Slice(files, func(i, j int) bool { return files[i].Name < files[j].Name })
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

// tools reports whether the readers of the output parse tar headers themselves.
func (o *Output) tools() bool { return o.Layout != nil && o.Layout.tools && o.Format != Dir }
