// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"context"
	"fmt"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/pkg/relo"
)

// relocator relocates programs as libbpf does. cilium/ebpf decides some relocations differently.
type relocator struct {
	functions map[string]*bpfobj.Function // keyed by symbol, as names in BTF may be equal
	records   []core.Record
	decisions []*core.Decision // one per record
}

// newRelocator decides an object's records on a kernel's types, with those that the loader adds.
func newRelocator(ctx context.Context, o *rule.Object, kernel *core.Target, added ...types) (*relocator, error) {
	r := &relocator{functions: make(map[string]*bpfobj.Function)}
	for i := range o.Funcs {
		r.functions[o.Funcs[i].Name] = &o.Funcs[i]
	}
	set := core.NewSets([]*core.Object{o.Relocations()}).For(kernel)
	if set == nil {
		return r, nil
	}
	r.records = o.Relocations().Records()
	r.decisions = make([]*core.Decision, len(r.records))
	for _, t := range append([]types{{core: kernel}}, added...) {
		table := new(core.Table) // decisions refer to the table
		if err := new(core.Filler).Fill(ctx, table, set, t.core, nil); err != nil {
			return nil, err
		}
		i := 0
		for _, d := range table.Libbpf().Decisions(0) {
			if t.core != kernel {
				d = r.decisions[i].OrAdded(d)
			}
			r.decisions[i] = d
			i++
		}
	}
	return r, nil
}

// record returns the index of an instruction's record, -1 for none.
func (r *relocator) record(symbol string, insn int) int {
	f := r.functions[symbol]
	if f == nil || insn >= len(f.Insns) {
		return -1
	}
	return int(f.Insns[insn].Record) - 1
}

// program returns a relocated copy of a program. The error is libbpf's reason to refuse it.
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
		i := r.record(function, int(it.Offset-start))
		// The library computes local IDs, which depend on the BTF that it loads.
		if i < 0 || i >= len(r.decisions) || r.records[i].Kind == relo.LocalTypeID {
			continue
		}
		d := r.decisions[i]
		switch {
		case d.Result == relo.Poisoned:
			poison(it.Ins)
		case !d.Result.OK():
			return nil, unrelocated(fmt.Sprintf("CO-RE relocation: %s: %s", d.Result, d.Reason()))
		default:
			patch(it.Ins, d)
		}
		*it.Ins = btf.WithCORERelocationMetadata(*it.Ins, nil)
	}
	return spec, nil
}

// unrelocated is libbpf's reason to refuse a program.
type unrelocated string

func (u unrelocated) Error() string { return string(u) }
func (u unrelocated) Unwrap() error { return syscall.EINVAL }

// typeIDs are IDs of a type in two BTFs.
type typeIDs [2]int64

// typeIDs returns the pairs of IDs that relocations for type IDs resolve to.
func (r *relocator) typeIDs(other *relocator) map[typeIDs]bool {
	ids := make(map[typeIDs]bool)
	for i := range min(len(r.decisions), len(other.decisions)) {
		a, b := r.decisions[i], other.decisions[i]
		if r.records[i].Kind == relo.TargetTypeID && a.Result == relo.Resolved && b.Result == relo.Resolved {
			ids[typeIDs{int64(a.New), int64(b.New)}] = true
		}
	}
	return ids
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
