// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
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

// ReadKernels reads the output of Output.Write in any format. The info is zero if there is none. Keys are canonical; files with
// the same key must have the same BTF. Every .btf file must have the name of a kernel, and there must be one.
func ReadKernels(ctx context.Context, name string) (info archive.Info, kernels []archive.Kernel, err error) {
	native, err := IsNative(name)
	if err != nil {
		return info, nil, err
	}
	if native {
		return readNative(ctx, name)
	}
	files, err := Read(ctx, name)
	if err != nil {
		return info, nil, err
	}
	all := union{at: make(map[kernel.Key]int)}
	for _, f := range files {
		if path.Ext(f.Name) != kernel.FileSuffix {
			continue
		}
		k, err := kernel.ParseFileName(f.Name)
		if err == nil {
			err = all.add(ctx, f.Name, []archive.Kernel{{Key: k.Canonical(), BTF: f.Data}})
		}
		if err != nil {
			return info, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	info, listed, err := readMade(ctx, name)
	if err == nil && !listed && len(all.kernels) == 0 {
		err = fmt.Errorf("%s: holds no %s file", name, kernel.FileSuffix)
	}
	if err != nil {
		return info, nil, err
	}
	return info, all.kernels, nil
}

// ReadInfo reads the info of an output of Output.Write. It is zero if there is none.
func ReadInfo(ctx context.Context, name string) (info archive.Info, err error) {
	native, err := IsNative(name)
	if err != nil {
		return info, err
	}
	if !native {
		info, _, err = readMade(ctx, name)
		return info, err
	}
	a, err := archive.OpenFile(name)
	if err != nil {
		return info, err
	}
	return a.Info(), nil
}

// readMade reads the info of a directory. It reports whether the directory has a list of files; a tar file has none.
func readMade(ctx context.Context, name string) (info archive.Info, listed bool, err error) {
	list, err := output.ReadList(ctx, name)
	if err != nil || list == nil {
		return info, false, err
	}
	if info, err = parseMade(list.Made); err != nil {
		return info, true, fmt.Errorf("%s: %w", filepath.Join(name, output.ListName), err)
	}
	return info, true, nil
}

// readNative reads a native archive.
func readNative(ctx context.Context, name string) (archive.Info, []archive.Kernel, error) {
	a, err := archive.OpenFile(name)
	if err != nil {
		return archive.Info{}, nil, err
	}
	var kernels []archive.Kernel
	layouts := make([][]byte, a.Layouts())
	total := int64(0)
	for _, k := range a.Keys() {
		if err := ctx.Err(); err != nil {
			return archive.Info{}, nil, err
		}
		l, _ := a.Layout(k)
		if layouts[l] == nil {
			if layouts[l], err = a.BTF(k); err != nil {
				return archive.Info{}, nil, fmt.Errorf("%s: %w", name, err)
			}
			if total += int64(len(layouts[l])); total > limits.BundleBytes {
				return archive.Info{}, nil, tooLarge(name)
			}
		}
		kernels = append(kernels, archive.Kernel{Key: k.Canonical(), BTF: layouts[l]})
	}
	return a.Info(), kernels, nil
}

// IsNative reports whether the content of a file is that of a native archive. A directory is not one.
func IsNative(name string) (bool, error) {
	fi, err := os.Stat(name)
	if err != nil || fi.IsDir() {
		return false, err
	}
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && err != io.EOF {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return archive.Is(head), nil
}

// ErrNotBundle is the error for a file in another format than those of Output.
var ErrNotBundle = errors.New("not an archive: neither a " + NativeSuffix + " nor a directory, .tar.gz, .tar.xz or .tar.zst")

// Read reads a directory or a tar of any format, by its content, up to limits.BundleBytes. Of a directory it reads the files in its
// list or, without a list, those whose names end in .btf. It follows hard links in a tar; equal files may share memory.
// Files are sorted by name, without "./".
func Read(ctx context.Context, path string) ([]File, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	read := readTar
	if fi.IsDir() {
		read = readDir
	}
	files, err := read(ctx, path)
	if err != nil {
		return nil, err
	}
	return sorted(path, files)
}

func tooLarge(name string) error {
	return fmt.Errorf("%s: too large: its files have more than %d MiB", name, limits.BundleBytes>>20)
}

func readDir(ctx context.Context, root string) (files []File, err error) {
	list, err := output.ReadList(ctx, root)
	if err != nil {
		return nil, err
	}
	paths := make(map[string]string) // by name
	if list != nil {
		for _, name := range list.Files {
			paths[name] = filepath.Join(root, filepath.FromSlash(name))
			if fi, err := os.Stat(paths[name]); err != nil || !fi.Mode().IsRegular() {
				return nil, fmt.Errorf("%s: %s is missing", filepath.Join(root, output.ListName), name)
			}
		}
	} else if err := findFiles(ctx, root, paths); err != nil {
		return nil, err
	}
	total := int64(0)
	for name, p := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		info, err := os.Stat(p)
		if err != nil {
			return nil, err
		}
		if total += info.Size(); total > limits.BundleBytes {
			return nil, tooLarge(root)
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		files = append(files, File{Name: name, Data: b})
	}
	return files, nil
}

// findFiles adds the paths of all .btf files of a directory. It skips hidden directories.
func findFiles(ctx context.Context, root string, paths map[string]string) error {
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		if d.IsDir() && p != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && strings.HasSuffix(p, kernel.FileSuffix) {
			name, err := filepath.Rel(root, p)
			paths[filepath.ToSlash(name)] = p
			return err
		}
		return nil
	})
}

func readTar(ctx context.Context, name string) (files []File, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	stream, err := open(ctx, bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer stream.Close()
	r := decompress.Limit(stream, limits.BundleBytes)
	tr := tar.NewReader(r)
	var buf decompress.Buffer
	byName := make(map[string][]byte)
	total := int64(0)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			// The rest is padding and the checksum.
			if _, err := io.Copy(io.Discard, r); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return files, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		member := path.Clean(h.Name)
		switch h.Typeflag {
		case tar.TypeReg:
			if total += h.Size; h.Size < 0 || total > limits.BundleBytes {
				return nil, tooLarge(name)
			}
			if _, err := buf.Append(tr, h.Size, limits.BundleBytes); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", name, member, err)
			}
			byName[member] = bytes.Clone(buf.B)
			buf.Trim()
		case tar.TypeLink:
			b, ok := byName[path.Clean(h.Linkname)]
			if !ok {
				return nil, fmt.Errorf("%s: %s: is a link to %s, which is missing", name, member, h.Linkname)
			}
			byName[member] = b
		default:
			continue
		}
		files = append(files, File{Name: member, Data: byName[member]})
	}
}

// open decompresses any of the formats.
func open(ctx context.Context, r *bufio.Reader) (io.ReadCloser, error) {
	head, err := r.Peek(decompress.SniffLen)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch f := decompress.Sniff(head); f {
	case decompress.Gzip, decompress.XZ, decompress.Zstd:
		return decompress.Open(ctx, decompress.Input{R: r, Size: -1}, f)
	}
	return nil, ErrNotBundle
}
