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
	"fmt"

	"github.com/cilium/ebpf/btf"

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
		spec, err := btf.LoadSpec(t.Path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Path, err)
		}
		return spec, nil
	}
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(t.BTF))
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", t.Match.Key, err)
	}
	return spec, nil
}
