// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"os"
)

// File is BTF with a path, for libbpf's btf_custom_path and libbpfgo's BTFObjPath.
type File struct {
	path  string
	close func() error // nil for a file that the user named
}

// Path returns the path of the BTF. It is valid until Close, and only in this process,
// because a file in memory has no name elsewhere. It is empty for the kernel's own BTF,
// which loaders find by themselves, together with the BTF of modules. Pass NULL to
// libbpf then.
func (f *File) Path() string { return f.path }

// Close closes a file in memory and removes a temporary one. Call it once, after
// the objects are loaded.
func (f *File) Close() error {
	if f.close == nil {
		return nil
	}
	return f.close()
}

// File returns the types as a file: the file that the user named, or the result of
// [NewFile] for the BTF of the archive. For the kernel's own BTF the path is empty. The
// caller closes it.
func (t *Types) File() (*File, error) {
	switch t.Source {
	case FromFile:
		return &File{path: t.Path}, nil
	case FromKernel:
		return new(File), nil
	}
	return NewFile(t.BTF)
}

// NewFile returns a file with this BTF: in memory (memfd) if the system supports that,
// otherwise a temporary file in [os.TempDir]. The caller closes it.
func NewFile(btf []byte) (*File, error) {
	if f, err := memoryFile(btf); err == nil {
		return f, nil
	}
	return temporaryFile(btf)
}

func temporaryFile(btf []byte) (*File, error) {
	f, err := os.CreateTemp("", "kernel-*.btf")
	if err != nil {
		return nil, err
	}
	_, err = f.Write(btf)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", f.Name(), err), os.Remove(f.Name()))
	}
	return &File{f.Name(), func() error { return os.Remove(f.Name()) }}, nil
}
