// SPDX-License-Identifier: Apache-2.0

package core

import (
	"errors"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/limits"
)

// LinkedProgram is a function with all functions that it refers to, directly or not.
// cilium/ebpf relocates these together (flattenInstructions in linker.go, v0.22).
type LinkedProgram struct {
	Section, Name string
	Records       []int // indices of records of the object
}

func link(o *bpfobj.Code, err error) ([]LinkedProgram, error) {
	if x := (*limits.Exceeded)(nil); errors.As(err, &x) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	programs := make([]LinkedProgram, len(o.Programs))
	for i, p := range o.Programs {
		fn := &o.Funcs[p.Fn]
		programs[i] = LinkedProgram{fn.Section, fn.Name, p.Records}
	}
	return programs, nil
}
