// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"context"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/pkg/relo"
)

// relocator relocates programs as libbpf does, which cilium/ebpf does in its own way.
type relocator struct {
	at        map[place]int // of a record
	records   []*core.Record
	decisions []*core.Decision
}

// place is where an instruction is.
type place struct {
	function string
	insn     int
}

// newRelocator takes the decisions on an object's records on a kernel, with types that the loader adds.
func newRelocator(ctx context.Context, o *core.Object, kernel *core.Kernel, added ...*core.Kernel) (*relocator, error) {
	r := &relocator{at: make(map[place]int)}
	set := core.NewSets([]*core.Object{o}).For(kernel)
	if set == nil {
		return r, nil
	}
	for n, t := range append([]*core.Kernel{kernel}, added...) {
		table := new(core.Table) // which its decisions need
		if err := table.Fill(ctx, set, t, nil); err != nil {
			return nil, err
		}
		for rec, d := range table.Decisions(0) {
			at := place{rec.Program, rec.Insn}
			if n > 0 {
				i := r.at[at]
				r.decisions[i] = r.decisions[i].OrAdded(d)
				continue
			}
			r.at[at] = len(r.records)
			r.records, r.decisions = append(r.records, rec), append(r.decisions, d)
		}
	}
	return r, nil
}

// program returns a program that is relocated, or libbpf's reason to refuse it.
func (r *relocator) program(spec *ebpf.ProgramSpec) (*ebpf.ProgramSpec, error) {
	spec = spec.Copy()
	function, start := "", asm.RawInstructionOffset(0)
	for it := spec.Instructions.Iterate(); it.Next(); {
		if symbol := it.Ins.Symbol(); symbol != "" {
			function, start = symbol, it.Offset
		}
		if btf.CORERelocationMetadata(it.Ins) == nil {
			continue
		}
		i, ok := r.at[place{function, int(it.Offset - start)}]
		if !ok || r.records[i].Kind == relo.LocalTypeID { // IDs are of the BTF that goes along, which the library makes
			continue
		}
		d := r.decisions[i]
		switch {
		case d.Result == relo.Poisoned:
			poison(it.Ins)
		case !d.Result.OK():
			return nil, fmt.Errorf("CO-RE relocation: %s: %s", d.Result, d.Reason())
		default:
			patch(it.Ins, d)
		}
		*it.Ins = btf.WithCORERelocationMetadata(*it.Ins, nil)
	}
	return spec, nil
}

// poison makes an instruction one that no verifier takes, of the same length, as both loaders do.
func poison(in *asm.Instruction) {
	bad := asm.BuiltinFunc(btf.COREBadRelocationSentinel).Call()
	if in.OpCode.IsDWordLoad() {
		bad = asm.LoadImm(asm.R10, btf.COREBadRelocationSentinel, asm.DWord)
	}
	bad.Metadata = in.Metadata
	*in = bad
}

// patch writes a decision's value into an instruction that the decision has found to fit.
func patch(in *asm.Instruction, d *core.Decision) {
	switch class := in.OpCode.Class(); {
	case class.IsALU(), in.OpCode.IsDWordLoad():
		in.Constant = int64(d.New)
		if class.IsALU() {
			in.Constant = int64(int32(d.New))
		}
	default:
		in.Offset = int16(d.New)
		switch d.Resized() {
		case 1:
			in.OpCode = in.OpCode.SetSize(asm.Byte)
		case 2:
			in.OpCode = in.OpCode.SetSize(asm.Half)
		case 4:
			in.OpCode = in.OpCode.SetSize(asm.Word)
		case 8:
			in.OpCode = in.OpCode.SetSize(asm.DWord)
		}
	}
}
