// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/output"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/archive"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// NativeSuffix ends the names of native archives.
const NativeSuffix = ".btfa"

// Output is where, and in which form, the minimized BTFs of kernels are written.
type Output struct {
	Path   string
	Native bool   // a native archive; Format is not used then
	Format Format // of the files
	BCC    bool   // the files are for bcc's tools to embed; Format must be TarGz
}

// OutputAt returns the output that a path asks for by its suffix.
func OutputAt(path string) (o Output, err error) {
	o.Path = path
	if o.Native = strings.HasSuffix(path, NativeSuffix); !o.Native {
		o.Format, err = FormatOf(path)
	}
	return o, err
}

// HasInfo says whether the output keeps an archive.Info.
func (o *Output) HasInfo() bool { return o.Native || o.Format == Dir }

// Check returns an error if Write would refuse what is at the path already.
func (o *Output) Check(ctx context.Context) error {
	if o.Native || o.Format != Dir {
		return nil
	}
	return output.CheckDir(ctx, o.Path)
}

// Write writes the kernels, given in any order, with info where HasInfo says so. It refuses what Read would, for its size, before
// it writes anything.
func (o *Output) Write(ctx context.Context, info archive.Info, kernels []archive.Kernel) (told output.Told, err error) {
	if o.Native {
		var b bytes.Buffer
		if err := archive.Write(ctx, &b, info, kernels); err != nil {
			return told, fmt.Errorf("%s: %w", o.Path, err)
		}
		return told, output.WriteFile(o.Path, func(w io.Writer) error {
			_, err := w.Write(b.Bytes())
			return err
		})
	}
	total := int64(0)
	for _, k := range kernels {
		total += int64(len(k.BTF))
	}
	if total > limits.BundleBytes { // which in an archive they have once
		return told, fmt.Errorf("%s: %s would take %s, more than the limit of %d MiB: choose fewer kernels, or write a %s",
			o.Path, words.Plural(len(kernels), "kernel"), words.Bytes(total), limits.BundleBytes>>20, NativeSuffix)
	}
	files := make([]File, len(kernels))
	for i, k := range kernels {
		files[i] = File{Name: k.Key.FileName(), Data: k.BTF}
		if o.BCC {
			files[i].Name = bccName(k.Key)
		}
	}
	if o.BCC {
		return told, WriteBCC(o.Path, files)
	}
	var made []byte
	if o.HasInfo() {
		if info, err = info.Canonical(kernels); err != nil {
			return told, fmt.Errorf("%s: %w", o.Path, err)
		}
		if made, err = json.Marshal(NewMade(info)); err != nil {
			return told, err
		}
	}
	return Write(ctx, o.Path, o.Format, files, made)
}

// bccMachines are the machines that uname spells differently from BTFHub. bcc's
// tools look for uname's.
var bccMachines = map[string]string{"arm64": "aarch64", "arm": "armv7l", "i386": "i686"}

// bccName returns the name, without ./, that bcc's tools look for on a host.
func bccName(k kernel.Key) string {
	if !k.Known() {
		return k.FileName()
	}
	k = k.Canonical()
	if m, ok := bccMachines[k.Arch]; ok {
		k.Arch = m
	}
	// Without a version its level is empty, as the tools have it.
	return strings.Join([]string{k.ID, k.VersionID, k.Arch, k.Release + kernel.FileSuffix}, "/")
}

// ReadKernels reads what an Output writes, whatever its form. The info of those that have none is
// zero. Keys are canonical; of files with one key all must have the same BTF. Of a directory with a list it reads what that has. A directory or tar must name each of its .btf files for its kernel, and have one.
func ReadKernels(ctx context.Context, name string) (archive.Info, []archive.Kernel, error) {
	native, err := IsNative(name)
	if err != nil {
		return archive.Info{}, nil, err
	}
	if native {
		return readNative(ctx, name)
	}
	files, err := Read(ctx, name)
	if err != nil {
		return archive.Info{}, nil, err
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
			return archive.Info{}, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	kernels := all.kernels
	info, listed, err := readInfo(ctx, name)
	if err != nil {
		return archive.Info{}, nil, err
	}
	if len(kernels) == 0 && !listed {
		return archive.Info{}, nil, fmt.Errorf("%s: holds no %s file", name, kernel.FileSuffix)
	}
	return info, kernels, nil
}

// readInfo returns what the list of a directory says of its making, and whether there is a list.
func readInfo(ctx context.Context, name string) (info archive.Info, listed bool, err error) {
	if fi, err := os.Stat(name); err != nil || !fi.IsDir() {
		return info, false, err
	}
	l, err := output.ReadList(ctx, name)
	if err != nil || l == nil {
		return info, false, err
	}
	if info, err = parseMade(l.Made); err != nil {
		return info, false, fmt.Errorf("%s: %w", filepath.Join(name, output.ListName), err)
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

// IsNative reports whether a file is a native archive, by its content. A directory is none.
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
