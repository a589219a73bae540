// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"github.com/cilium/ebpf"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// StructOpsPrefix begins the name of a struct of the kernel. There is one for each struct_ops that programs may
// implement.
const StructOpsPrefix = "bpf_struct_ops_"

// Unopened returns the reasons why a loader does not open the object, whatever the kernel; none if it does. libbpf
// refuses sections that it does not know (bpf_object__elf_collect and bpf_program__record_reloc in libbpf.c), values of
// pinning that it does not know (parse_btf_map_def), variables of an arena without a map for them
// (bpf_object__init_user_btf_maps), static programs (bpf_object__add_programs) and symbols without a declaration
// (bpf_object__collect_externs).
func (o *Object) Unopened(l Loader) (all []Finding) {
	switch l {
	case EbpfGo:
		if o.unread.Subject != "" {
			all = append(all, o.unread)
		}
		return all
	case Aya:
		return o.ayaUnopened()
	}
	if o.Unread != "" {
		all = append(all, Finding{Status: Fails, Code: MapSection, Subject: "in section " + o.Unread, Loader: l})
	}
	for i := range o.Maps {
		if m := &o.Maps[i]; m.Pinning > pinByName || m.Inner != nil && m.Inner.Pinned {
			all = append(all, Finding{
				Status: Fails, Code: MapPinning, Subject: m.Name, Loader: l,
				Args: Args{Count: int64(m.Pinning)},
			})
		}
	}
	isArena := func(m bpfobj.Map) bool { return ebpf.MapType(m.Type) == ebpf.Arena }
	if o.ArenaData && !slices.ContainsFunc(o.Maps, isArena) {
		all = append(all, Finding{
			Status: Fails, Code: ObjectArena, Subject: o.name, Loader: l,
			Args: Args{Name: arenaData},
		})
	}
	if o.Static != "" {
		all = append(all, Finding{Status: Fails, Code: ObjectStatic, Subject: "function " + o.Static, Loader: l})
	}
	for i := range o.Externs {
		if x := &o.Externs[i]; x.Kind == bpfobj.ExternUndeclared {
			all = append(all, Finding{
				Status: Fails, Code: KsymUndeclared, Subject: x.Name, Loader: l,
				Args: Args{Stops: ObjectStops},
			})
		}
	}
	return all
}

// Untyped returns a finding if of libbpf and ebpf-go only the other one knows the name of a program's section.
func Untyped(pr *bpfobj.Program, l Loader) Finding {
	s := pr.Attach
	switch {
	case s == nil:
	case l == Libbpf && !s.Libbpf(pr.Section):
		return Finding{Status: Fails, Code: SectionUnknown, Subject: pr.Section, Loader: l, Args: Args{Name: s.Prefix}}
	case l == EbpfGo && s.Newer:
		return Finding{Status: Fails, Code: SectionNewer, Subject: pr.Section, Loader: l}
	}
	return Finding{}
}

// opening judges what libbpf checks before it creates the first map: whether the kernel has each struct_ops
// (bpf_map__init_kern_struct_ops), except in maps that the loader leaves out.
func (s *Scene) opening() (l []neededPart) {
	for i := range s.o.StructOps {
		m := &s.o.StructOps[i]
		if m.Optional || s.SetsMap(m.Name) {
			continue
		}
		for _, f := range s.structOps(m) {
			if f.Status != OK {
				f.Stops = s.loader.stopsWithout()
				l = append(l, neededPart{structOpsOf(m.Type), f})
			}
		}
	}
	return l
}

// structOps judges a struct_ops: whether the kernel has it, with all members that are set, as libbpf wants. It also
// judges links: kernels without them refuse the flag of the map.
func (s *Scene) structOps(m *bpfobj.StructOpsMap) (l []Finding) {
	y, ok := s.k.find(StructOpsPrefix+m.Type, btf.KindStruct)
	if !ok {
		f := Finding{
			Status: Fails, Code: StructOpsMissing, Subject: structOpsOf(m.Type),
			Args: Args{Name: m.Name, Decided: ByWitness, Witness: StructOpsPrefix + m.Type},
		}
		if slices.Contains(builtInOps, m.Type) {
			return []Finding{f}
		}
		return []Finding{s.k.elsewhere(f, facts.StructOpsInModules, StructOpsModule)}
	}
	if y.module != "" {
		l = append(l, Finding{
			Status: MayFail, Code: ModuleNeeded, Subject: structOpsOf(m.Type),
			Args: Args{Names: Names(y.module)},
		})
	}
	for _, member := range m.Members {
		if y, ok := s.k.find(m.Type, btf.KindStruct); ok && s.loader == Libbpf && !hasMember(y.typ(), member, 0) {
			w := m.Type + "." + member
			l = append(l, Finding{
				Status: Fails, Code: StructOpsMember, Subject: structOpsOf(w), Loader: Libbpf,
				Args: Args{Decided: ByWitness, Witness: w},
			})
		}
	}
	// libbpf creates the map before it loads programs. cilium/ebpf loads them without it.
	if m.Link {
		f := s.k.judge(facts.StructOpsLinks, FeatureMissing)
		f.Loader, f.Attach = s.loader, s.loader == EbpfGo
		l = append(l, f)
	}
	for i := range l {
		l[i] = l[i].named(m.Name)
	}
	return l
}

// builtInOps are struct_ops that no module has: callers of register_bpf_struct_ops in net/ipv4/bpf_tcp_ca.c,
// kernel/sched/ext.c, net/sched/bpf_qdisc.c and net/bpf/bpf_dummy_struct_ops.c.
var builtInOps = []string{"tcp_congestion_ops", "sched_ext_ops", "Qdisc_ops", "bpf_dummy_ops"}

// structOpsOf is what findings on a struct_ops are about.
func structOpsOf(name string) string { return "struct_ops " + name }
