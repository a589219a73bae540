// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/btfgen/btfgen/internal/bpfprog"
	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/defect"
	"github.com/btfgen/btfgen/internal/limits"
	"github.com/btfgen/btfgen/internal/rawbtf"
)

// StructOpsPrefix is what the name of a struct begins with that a kernel has for each struct_ops that
// programs may implement.
const StructOpsPrefix = "bpf_struct_ops_"

// ebpfGoReads asks cilium/ebpf whether it reads the object. Which of several errors it returns is up to chance, so the reason
// comes from what is known of the object.
func (o *Object) ebpfGoReads(ctx context.Context, data []byte) Finding {
	f := Finding{Status: Fails, Topic: TopicObject, Subject: o.name, Loader: EbpfGo, Reason: "ebpf-go does not read the object" + o.ebpfGoHint()}
	if o.BTF != nil && o.BTF.NumTypes() > limits.LoaderTypes || o.Unfolded > limits.Inflated {
		f.Status, f.Reason = Unknown, "too large to tell whether ebpf-go reads the object"
		return f
	}
	if o.BTF != nil && rawbtf.CheckRecursion(ctx, o.BTF) != nil { // it would end the process
		return f
	}
	var err error
	if d := defect.Catch(ctx, func() { _, err = ebpf.LoadCollectionSpecFromReader(bytes.NewReader(data)) }); d != nil {
		err = d
	}
	if err != nil {
		return f
	}
	return Finding{}
}

// ebpfGoHint names something that cilium/ebpf refuses to read: references to weak maps and settings (relocateInstruction in its
// elf_reader.go), or typed variables of the kernel (loadKsymsSection).
func (o *Object) ebpfGoHint() string {
	refers := func(kind bpfprog.RefKind, n int) bool {
		return slices.ContainsFunc(o.Funcs, func(f bpfprog.Function) bool {
			return slices.ContainsFunc(f.Insns, func(in bpfprog.Insn) bool { return in.Ref.Kind == kind && int(in.Ref.N) == n })
		})
	}
	for i, m := range o.Maps {
		if m.Weak && refers(bpfprog.RefMap, i) {
			return ": map " + m.Name + " is weak"
		}
	}
	for i, x := range o.Externs {
		switch {
		case x.Kind == bpfprog.ExternKsym && x.Type != 0 && o.isVar(x.Type):
			return ": the kernel's variable " + x.Name + " has a type"
		case x.Kind == bpfprog.ExternKconfig && x.Weak && refers(bpfprog.RefExtern, i):
			return ": variable " + x.Name + " is weak"
		}
	}
	return ""
}

func (o *Object) isVar(id btfenc.TypeID) bool {
	t := o.BTF.Type(id)
	return t.Kind() == btfenc.KindVar
}

// opening judges what libbpf minds before it makes the first map: sections that it does not know
// (bpf_object__elf_collect and bpf_program__record_reloc in libbpf.c), static programs (bpf_object__add_programs), and
// struct_ops that the kernel does not have (bpf_map__init_kern_struct_ops), but for the maps that the loader leaves out.
func (p *pairing) opening(left func(name string) bool) (l []Finding) {
	if p.o.Unread != "" {
		l = append(l, Finding{
			Status: Fails, Topic: TopicMapDef, Subject: "in section " + p.o.Unread, Loader: Libbpf,
			Reason: "libbpf does not open objects that have maps or data in such a section, since its version 1.0",
		})
	}
	if p.o.Static != "" {
		l = append(l, Finding{
			Status: Fails, Topic: TopicObject, Subject: "function " + p.o.Static, Loader: Libbpf,
			Reason: "libbpf does not open objects that have a static function outside .text, since its version 0.4",
		})
	}
	for _, m := range p.o.StructOps.Maps {
		if m.Optional || left(m.Name) {
			continue
		}
		f := Finding{Status: Fails, Topic: TopicMap, Subject: structOpsOf(m.Type), Reason: "the kernel has no such struct_ops" + libbpfRefuses}
		if y, ok := p.k.find(StructOpsPrefix+m.Type, btfenc.KindStruct); ok {
			if f.Status, f.Reason = MayFail, y.needs()+libbpfRefuses; y.module == "" {
				continue
			}
		}
		l = append(l, f)
	}
	return l
}

// structOpsOf is what findings on a struct_ops are about.
func structOpsOf(name string) string { return "struct_ops " + name }
