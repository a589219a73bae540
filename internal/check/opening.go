// SPDX-License-Identifier: Apache-2.0

package check

import "github.com/btfgen/btfgen/internal/btfenc"

// StructOpsPrefix is what the name of a struct begins with that a kernel has for each struct_ops that
// programs may implement.
const StructOpsPrefix = "bpf_struct_ops_"

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
