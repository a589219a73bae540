// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
	"os"
)

// File is BTF that has a path, for loaders that want one: libbpf's
// btf_custom_path, libbpfgo's BTFObjPath.
type File struct {
	path   string
	memory *os.File // what is open while path leads to it; nil if path is a name on disk
	remove bool     // path is a temporary file
}

// Path returns the path, which leads to the BTF until Close. It is for this
// process: a file in memory has no name for others. It is empty for the
// kernel's own BTF, which loaders find by themselves, with the BTF of modules as
// well; in C that is a NULL.
func (f *File) Path() string { return f.path }

// Close gives up the path, and removes the file if it is a temporary one. It
// must be called once, after the objects are loaded.
func (f *File) Close() error {
	switch {
	case f.memory != nil:
		return f.memory.Close()
	case f.remove:
		return os.Remove(f.path)
	}
	return nil
}

// File returns the types as a file: the user's own, or one in memory where the
// system has that, otherwise a temporary one. The caller closes it.
func (t *Types) File() (*File, error) {
	switch t.Source {
	case FromFile:
		return &File{path: t.Path}, nil
	case FromKernel:
		return new(File), nil
	}
	return NewFile(t.BTF)
}

// NewFile returns a file with this BTF, as Types.File does. The caller closes it.
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
	return &File{path: f.Name(), remove: true}, nil
}
