// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"errors"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/limits"
)

// Unit is a function with all functions that it refers to, directly or not.
// cilium/ebpf relocates these together (flattenInstructions in linker.go, v0.22).
type Unit struct {
	Section, Name string
	Records       []int32 // of the object
}

// Units returns what cilium/ebpf relocates together. The object is linked at the
// first call. An object whose code cannot be read has no units; an error is a
// [limits.Exceeded].
func (o *Object) Units() ([]Unit, error) { return o.units() }

func link(f *bpfobj.File) ([]Unit, error) {
	o, err := f.Parse(context.Background())
	if x := (*limits.Exceeded)(nil); errors.As(err, &x) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	units := make([]Unit, len(o.Programs))
	for i, p := range o.Programs {
		fn := &o.Funcs[p.Fn]
		units[i] = Unit{Section: fn.Section, Name: fn.Name, Records: make([]int32, len(p.Records))}
		for k, r := range p.Records {
			units[i].Records[k] = int32(r)
		}
	}
	return units, nil
}
