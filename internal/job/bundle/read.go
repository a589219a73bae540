// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// ErrNotBundle is the error for a file in another format than those of Output.
var ErrNotBundle = errors.New("not an archive: neither a " + NativeSuffix + " nor a directory, .tar.gz, .tar.xz or .tar.zst")

// OpenNative opens a native archive. It returns nil for a file of another format and for a directory.
func OpenNative(name string) (*archive.Archive, error) {
	if fi, err := os.Stat(name); err == nil && fi.IsDir() {
		return nil, nil
	}
	a, err := archive.OpenFile(name)
	if errors.Is(err, archive.ErrNotArchive) {
		return nil, nil
	}
	return a, err
}

// ReadInfo reads the info of an output of Output.Write. It is zero if there is none.
func ReadInfo(ctx context.Context, name string) (info archive.Info, err error) {
	a, err := OpenNative(name)
	if err != nil {
		return info, err
	}
	if a != nil {
		return a.Info(), nil
	}
	_, info, err = readList(ctx, name)
	return info, err
}

// readList reads the list of a directory, if it has one, and the info in it. A tar file has neither.
func readList(ctx context.Context, name string) (list *output.List, info archive.Info, err error) {
	list, err = output.ReadList(ctx, name)
	if err == nil && list != nil && len(list.Made) > 0 {
		if err = json.Unmarshal(list.Made, &info); err != nil {
			err = fmt.Errorf("%s: made: %w", filepath.Join(name, output.ListName), err)
		}
	}
	return list, info, err
}

// ReadKernels reads the output of Output.Write in any format. The info is zero if there is none. Keys are canonical; files with
// the same key must have the same BTF. Every .btf file must have the name of a kernel. Without a list there must be one; the
// error is ErrNotBundle otherwise, as for other formats.
func ReadKernels(ctx context.Context, name string) (info archive.Info, kernels []archive.Kernel, err error) {
	a, err := OpenNative(name)
	if err != nil {
		return info, nil, err
	}
	if a != nil {
		if kernels, err = a.Kernels(); err != nil {
			return info, nil, fmt.Errorf("%s: %w", name, err)
		}
		for i := range kernels {
			kernels[i].Key = kernels[i].Key.Canonical()
		}
		return a.Info(), kernels, nil
	}
	list, info, err := readList(ctx, name)
	if err != nil {
		return info, nil, err
	}
	files, err := readFiles(ctx, name, list)
	if err != nil {
		return info, nil, err
	}
	all := union{at: make(map[kernel.Key]int)}
	for _, f := range files {
		k, err := kernel.ParseFileName(f.Name)
		if err != nil {
			return info, nil, fmt.Errorf("%s: %w", name, notBundle{err})
		}
		if err := all.add(ctx, f.Name, []archive.Kernel{{Key: unquoted(k), BTF: f.Data}}); err != nil {
			return info, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if list == nil && len(files) == 0 {
		return info, nil, notBundle{fmt.Errorf("%s: holds no %s file", name, kernel.FileSuffix)}
	}
	return info, all.kernels, nil
}

// notBundle is an ErrNotBundle with its own text.
type notBundle struct{ error }

func (notBundle) Is(target error) bool { return target == ErrNotBundle }

// readFiles reads the .btf files of a directory or of a tar of any format, by its content, up to limits.BundleBytes. Of a directory
// with a list it reads those in the list. It follows hard links in a tar; equal files may share memory. Files are sorted by name,
// without "./".
func readFiles(ctx context.Context, name string, list *output.List) (files []File, err error) {
	fi, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !fi.IsDir():
		if files, err = readTar(ctx, name); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	case list != nil:
		files, err = readDir(ctx, name, list.Files)
	default:
		var found []string
		if found, err = findFiles(ctx, name); err == nil {
			files, err = readDir(ctx, name, found)
		}
	}
	if err != nil {
		return nil, err
	}
	return sorted(name, files)
}

// readDir reads files of a directory.
func readDir(ctx context.Context, dir string, names []string) (files []File, err error) {
	total := int64(0)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := filepath.Join(dir, filepath.FromSlash(name))
		fi, err := os.Stat(p)
		if err != nil || !fi.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: %s is missing", filepath.Join(dir, output.ListName), name)
		}
		if total += fi.Size(); total > limits.BundleBytes {
			return nil, fmt.Errorf("%s: too large: its files have more than %d MiB", dir, limits.BundleBytes>>20)
		}
		b, err := limits.ReadFile(p, fi.Size())
		if err != nil {
			return nil, err
		}
		files = append(files, File{Name: name, Data: b})
	}
	return files, nil
}

// findFiles returns the names of all .btf files of a directory. It skips hidden directories.
func findFiles(ctx context.Context, root string) (names []string, err error) {
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		if d.IsDir() && p != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && strings.HasSuffix(p, kernel.FileSuffix) {
			name, err := filepath.Rel(root, p)
			names = append(names, filepath.ToSlash(name))
			return err
		}
		return nil
	})
	return names, err
}

// readTar reads the .btf files of a tar.
func readTar(ctx context.Context, name string) (files []File, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	head, err := in.Peek(decompress.SniffLen)
	if err != nil && err != io.EOF {
		return nil, err
	}
	format := decompress.Sniff(head)
	if format != decompress.Gzip && format != decompress.XZ && format != decompress.Zstd {
		return nil, cmp.Or(Other(name), ErrNotBundle)
	}
	stream, err := decompress.Open(ctx, in, -1, format, nil)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	r := decompress.Limit(stream, limits.BundleBytes)
	tr := tar.NewReader(r)
	byName := make(map[string][]byte)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			_, err = io.Copy(io.Discard, r) // padding and the checksum
			return files, err
		} else if err != nil {
			return nil, err
		}
		member := path.Clean(h.Name)
		switch h.Typeflag {
		case tar.TypeReg:
			if byName[member], err = io.ReadAll(tr); err != nil {
				return nil, fmt.Errorf("%s: %w", member, err)
			}
		case tar.TypeLink:
			b, ok := byName[path.Clean(h.Linkname)]
			if !ok {
				return nil, fmt.Errorf("%s: is a link to %s, which is missing", member, h.Linkname)
			}
			byName[member] = b
		default:
			continue
		}
		if path.Ext(member) == kernel.FileSuffix {
			files = append(files, File{Name: member, Data: byName[member]})
		}
	}
}
