// SPDX-License-Identifier: Apache-2.0

// Package btfspec converts the result of archive.Find for cilium/ebpf:
//
//	types, err := archive.Find(archive.FindOptions{Archive: a})
//	// …
//	spec, err := btfspec.Load(types)
//	// …
//	coll, err := ebpf.NewCollectionWithOptions(objects, ebpf.CollectionOptions{
//		Programs: ebpf.ProgramOptions{KernelTypes: spec},
//	})
//
// It is a separate package, so programs with another loader do not depend on
// cilium/ebpf.
package btfspec

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"io"
	"os"

	cbtf "github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/archive"
)

// Load returns the types for KernelTypes of cilium/ebpf's ProgramOptions. The result is
// nil for the kernel's own BTF, which the library finds by itself, together with the BTF
// of modules. The Spec belongs to the caller. An error about a file names its path.
func Load(t *archive.Types) (*cbtf.Spec, error) {
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

// load reads BTF. It refuses types on which the library would overflow its stack.
func load(data []byte) (*cbtf.Spec, error) {
	view, err := btf.New(data, nil)
	if err != nil {
		return nil, err
	}
	if err := btf.CheckRecursion(context.Background(), view); err != nil {
		return nil, err
	}
	return cbtf.LoadSpecFromReader(bytes.NewReader(data))
}

// loadFile reads the BTF of a file: raw, or the section of an ELF file.
func loadFile(path string) (*cbtf.Spec, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	read := func() ([]byte, error) { return io.ReadAll(f) }
	if image, err := elf.NewFile(f); err == nil {
		section := image.Section(".BTF")
		if section == nil {
			return nil, cbtf.ErrNotFound
		}
		read = section.Data
	}
	data, err := read()
	if err != nil {
		return nil, err
	}
	return load(data)
}
