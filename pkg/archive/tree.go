// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/btfgen/btfgen/pkg/kernel"
)

// maxTreeBTF limits the size of one BTF in a tree, in bytes. The BTF of a whole kernel
// has less than a tenth of it.
const maxTreeBTF = 64 << 20

// zstSuffix ends the names of compressed files.
const zstSuffix = ".zst"

// Tree is a file tree with BTFHub's layout, ID/VERSION_ID/ARCH/RELEASE.btf, as written
// by "btfgen generate -o DIR". Files may be compressed (.btf.zst). A Tree is immutable,
// and safe for use by many goroutines if its file system is.
type Tree struct {
	fsys  fs.FS
	dir   directory
	files []string // by number of the kernel
}

// OpenTree opens a tree, such as an embed.FS. Its root has a directory for each
// distribution; [fs.Sub] returns the tree below another directory. A file RELEASE.btf in
// the root is a kernel without distribution and arch. OpenTree ignores hidden
// directories and all files but .btf and .btf.zst. Unpack BTFHub's .btf.tar.xz first.
// OpenTree reads only names; [Tree.BTF] reads the content.
//
// The error says that fsys cannot be read, that the name of a .btf file does not fit the
// layout, that two files are for one kernel, or that there are no files.
func OpenTree(fsys fs.FS) (*Tree, error) {
	t := &Tree{fsys: fsys, dir: directory{index: make(map[kernel.Key]int)}}
	err := fs.WalkDir(fsys, ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() && name != "." && strings.HasPrefix(e.Name(), ".") {
			return fs.SkipDir
		}
		plain := strings.TrimSuffix(name, zstSuffix)
		if err != nil || e.IsDir() || path.Ext(plain) != kernel.FileSuffix {
			return err
		}
		k, err := kernel.ParseFileName(plain)
		if err != nil {
			return err
		}
		if !t.dir.add(k) {
			return fmt.Errorf("%s: kernel %s occurs twice", name, k)
		}
		t.files = append(t.files, name)
		return nil
	})
	if err == nil && len(t.files) == 0 {
		err = errors.New("no file ID/VERSION_ID/ARCH/RELEASE.btf")
	}
	if err != nil {
		return nil, fmt.Errorf("tree: %w", err)
	}
	return t, nil
}

// Keys returns the kernels in the order of kernel.Key.Compare. The slice
// belongs to the caller.
func (t *Tree) Keys() []kernel.Key { return t.dir.sorted() }

// Lookup finds the kernel whose BTF serves a host, as [Archive.Lookup] does. It reads
// files to compare the BTF of kernels. A file that cannot be read differs from all
// others.
func (t *Tree) Lookup(want kernel.Key, neighbours int) Match {
	return t.dir.lookup(want, neighbours, func(i, j int) bool {
		a, err1 := t.read(i)
		b, err2 := t.read(j)
		return err1 == nil && err2 == nil && bytes.Equal(a, b)
	})
}

// BTF returns the BTF of exactly this kernel. The spelling of distribution and
// architecture does not matter. The slice belongs to the caller. The error is
// [ErrNoKernel] if the kernel is missing, and otherwise names the file that cannot be
// read.
func (t *Tree) BTF(k kernel.Key) ([]byte, error) {
	i, ok := t.dir.find(k)
	if !ok {
		return nil, fmt.Errorf("tree: kernel %s: %w", k, ErrNoKernel)
	}
	b, err := t.read(i)
	if err != nil {
		return nil, fmt.Errorf("tree: %s: %w", t.files[i], err)
	}
	return b, nil
}

// read returns the BTF of a kernel by its number.
func (t *Tree) read(i int) ([]byte, error) {
	f, err := t.fsys.Open(t.files[i])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxTreeBTF+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxTreeBTF:
		return nil, fmt.Errorf("more than %d bytes", maxTreeBTF)
	case !strings.HasSuffix(t.files[i], zstSuffix):
		return b, nil
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxTreeBTF), zstd.WithDecoderMaxWindow(maxTreeBTF))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(b, nil)
}
