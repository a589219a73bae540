// SPDX-License-Identifier: Apache-2.0

// Package btfspec gives what pkg/archive found to cilium/ebpf:
//
//	types, err := archive.Find(archive.Options{Archive: a})
//	// …
//	spec, err := btfspec.Load(types)
//	// …
//	coll, err := ebpf.NewCollectionWithOptions(objects, ebpf.CollectionOptions{
//		Programs: ebpf.ProgramOptions{KernelTypes: spec},
//	})
//
// It is apart from pkg/archive so that those who use another loader do not
// depend on cilium/ebpf.
package btfspec

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/rawbtf"
	"github.com/btfgen/btfgen/pkg/archive"
)

// Load returns the types in the form that goes into KernelTypes of cilium/ebpf's
// ProgramOptions. It is nil for the kernel's own BTF, which the library finds by
// itself, with the BTF of modules as well. The Spec belongs to the caller. The error
// says what is wrong with the file that the user named, by its path.
func Load(t *archive.Types) (*btf.Spec, error) {
	switch t.Source {
	case archive.FromKernel:
		return nil, nil
	case archive.FromFile:
		spec, err := loadFile(t.Path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Path, err)
		}
		return spec, nil
	}
	spec, err := load(t.BTF)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", t.Match.Key, err)
	}
	return spec, nil
}

// load reads BTF. It refuses types that the library would follow until the stack is full.
func load(data []byte) (*btf.Spec, error) {
	view, err := rawbtf.New(data, nil)
	if err != nil {
		return nil, err
	}
	if err := rawbtf.CheckRecursion(context.Background(), view); err != nil {
		return nil, err
	}
	return btf.LoadSpecFromReader(bytes.NewReader(data))
}

// loadFile reads the BTF of a file: raw, or the section of an ELF file.
func loadFile(path string) (*btf.Spec, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	read := func() ([]byte, error) { return io.ReadAll(f) }
	if image, err := elf.NewFile(f); err == nil {
		section := image.Section(".BTF")
		if section == nil {
			return nil, btf.ErrNotFound
		}
		read = section.Data
	}
	data, err := read()
	if err != nil {
		return nil, err
	}
	return load(data)
}
