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
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/btfgen/btfgen/internal/corpus/decompress"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/output"
)

// ErrNotBundle says that a file is none that Write makes.
var ErrNotBundle = errors.New("not an archive: neither a " + NativeSuffix + " nor a directory, .tar.gz, .tar.xz or .tar.zst")

// Read reads what Write and WriteBCC write, of a directory the files that its list
// has or, if it has none, those that end in .btf. Content decides about the format. Hard links in a tar are followed;
// equal files may share memory. Files are in order of their names, without "./".
// The result may have up to 1 GiB, and so may the tar.
func Read(ctx context.Context, path string) ([]File, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var files []File
	if fi.IsDir() {
		files, err = readDir(ctx, path)
	} else {
		files, err = readTar(ctx, path)
	}
	if err != nil {
		return nil, err
	}
	return sorted(path, files)
}

func tooLarge(name string) error {
	return fmt.Errorf("%s: too large: its files have more than %d MiB", name, limits.BundleBytes>>20)
}

func readDir(ctx context.Context, root string) (files []File, err error) {
	at, err := listedFiles(ctx, root)
	if err == nil && at == nil {
		at, err = findFiles(ctx, root)
	}
	if err != nil {
		return nil, err
	}
	total := int64(0)
	for name, p := range at {
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

// ErrList says that a directory and its list do not go together.
var ErrList = errors.New("the list of a directory does not go with it")

// listError is an ErrList that says itself what is wrong.
type listError struct{ error }

func (listError) Is(target error) bool { return target == ErrList }

// listedFiles returns the files that the list of a directory has by their names, and where they are; nil if there is
// no list.
func listedFiles(ctx context.Context, root string) (map[string]string, error) {
	list, err := output.ReadList(ctx, root)
	if err != nil {
		return nil, cmp.Or[error](ctx.Err(), listError{err})
	}
	if list == nil {
		return nil, nil
	}
	moving, err := output.Moving(root)
	if err != nil {
		return nil, err
	}
	at := make(map[string]string, len(list.Files))
	for _, name := range list.Files {
		p := filepath.Join(root, filepath.FromSlash(name))
		if to, ok := moving[name]; ok {
			p = to
		} else if fi, err := os.Stat(p); err != nil || !fi.Mode().IsRegular() {
			return nil, listError{fmt.Errorf("%s: %s is not there", filepath.Join(root, output.ListName), name)}
		}
		at[name] = p
	}
	return at, nil
}

// findFiles returns the files of a directory by their names, and where they are: also those that a
// run had no time to move to their places. Hidden directories are passed over.
func findFiles(ctx context.Context, root string) (map[string]string, error) {
	at := make(map[string]string)
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		if d.IsDir() && p != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && strings.HasSuffix(p, ".btf") {
			name, err := filepath.Rel(root, p)
			at[filepath.ToSlash(name)] = p
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	moving, err := output.Moving(root)
	maps.Copy(at, moving)
	return at, err
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
			// What follows is padding, and the checksum of what was read.
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
				return nil, fmt.Errorf("%s: %s: is a link to %s, which is not there", name, member, h.Linkname)
			}
			byName[member] = b
		default:
			continue
		}
		files = append(files, File{Name: member, Data: byName[member]})
	}
}

// open reads what is compressed in one of the formats that Write knows.
func open(ctx context.Context, r *bufio.Reader) (io.ReadCloser, error) {
	head, err := r.Peek(decompress.SniffLen)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch f := decompress.Sniff(head); f {
	case decompress.Gzip, decompress.XZ, decompress.Zstd:
		return new(decompress.Scratch).Open(ctx, decompress.Input{R: r, Size: -1}, f)
	}
	return nil, ErrNotBundle
}
