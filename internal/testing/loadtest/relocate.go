// SPDX-License-Identifier: Apache-2.0

package loadtest

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// Relocate returns a program's instructions as relocated by cilium/ebpf before it loads
// them, or nil if that fails.
func Relocate(p *ebpf.ProgramSpec, kernel *btf.Spec) asm.Instructions {
	insns := p.Copy().Instructions
	var relos []*btf.CORERelocation
	var at []*asm.Instruction
	for it := insns.Iterate(); it.Next(); {
		if r := btf.CORERelocationMetadata(it.Ins); r != nil {
			relos, at = append(relos, r), append(at, it.Ins)
		}
	}
	var local btf.Builder
	fixups, err := btf.CORERelocate(relos, []*btf.Spec{kernel}, p.ByteOrder, local.Add)
	if err != nil {
		return nil
	}
	for i := range fixups {
		if fixups[i].Apply(at[i]) != nil {
			return nil
		}
	}
	return insns
}
