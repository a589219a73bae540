// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// interfaces judges the types of programs, attachments and links by the enums in the
// kernel's BTF. Without an enum, nothing is judged.
func (e *Evaluation) interfaces() {
	if e.k.enums[facts.EnumHelper] == nil {
		e.add(Finding{Status: Unknown, Code: AnalysisNoHelpers, Subject: "helpers"})
	}
	s := e.pr.Attach
	if s == nil {
		e.add(Finding{Status: Unknown, Code: AnalysisSection, Subject: e.pr.Section})
		return
	}
	all := []Finding{e.k.enumerator("BPF_PROG_TYPE_"+s.ProgType, ProgTypeMissing), e.k.judge(facts.Section(s.Prefix), FeatureMissing)}
	if f := Untyped(e.pr); f.Status != OK && e.counts(Libbpf) {
		f.Stops = ObjectStops
		all = append(all, f)
	}
	if s.Type != "" && !s.Optional {
		f := e.k.enumerator(s.Type, AttachTypeMissing)
		f.Attach = !looksAtAttachType(s.ProgType)
		if f.Status == Fails && s.ProgType == "SK_REUSEPORT" {
			f.Status = MayFail // sockets take it, and do not call it when they migrate
		}
		all = append(all, f)
	}
	if l := linkTypes[s.Type]; l != "" {
		f := e.k.enumerator(l, LinkTypeMissing)
		if f.Attach = true; l == linkTCX && f.Status != OK {
			f.Status, f.Code = MayFail, LinkTypeTCX
		}
		all = append(all, f)
	}
	const most = 4096 // BPF_MAXINSNS
	slots := 0
	for _, fn := range e.pr.Funcs {
		if slots += len(e.o.Funcs[fn].Insns); slots > most {
			all = append(all, e.k.judge(facts.LargePrograms, FeatureMissing))
			break
		}
	}
	all = append(all, e.specialValues()...)
	if maySleep(s) {
		all = append(all, e.sleepingMaps()...)
	} else if s.ProgType == "PERF_EVENT" {
		for _, fn := range e.pr.Funcs {
			if m := e.o.allocates(fn); m != nil {
				all = append(all, e.k.judge(facts.MapsOnDemand, FeatureMissing).named(m.Name))
				break
			}
		}
	}
	e.addAll(all)
}

// looksAtAttachType reports whether kernels look at the type of attachment when they load programs of a type, not only when they
// attach them: bpf_prog_load_check_attach_type in kernel/bpf/syscall.c, and what needs a BTF target. A kernel that knows no type of
// attachment for programs of another type loads these whatever the type is: 5.10 loads those of kprobe.multi, 4.19 those of xdp/devmap.
func looksAtAttachType(progType string) bool {
	switch progType {
	case "TRACING", "LSM", "SK_LOOKUP", "NETFILTER", "EXT", "STRUCT_OPS":
		return true
	}
	return strings.HasPrefix(progType, "CGROUP_")
}

const linkTCX = "BPF_LINK_TYPE_TCX"

// linkTypes are the types of links that attachments cannot do without.
var linkTypes = map[string]string{
	"BPF_TRACE_KPROBE_MULTI":   "BPF_LINK_TYPE_KPROBE_MULTI",
	"BPF_TRACE_KPROBE_SESSION": "BPF_LINK_TYPE_KPROBE_MULTI",
	"BPF_TRACE_UPROBE_MULTI":   "BPF_LINK_TYPE_UPROBE_MULTI",
	"BPF_TRACE_UPROBE_SESSION": "BPF_LINK_TYPE_UPROBE_MULTI",
	"BPF_NETFILTER":            "BPF_LINK_TYPE_NETFILTER",
	"BPF_TCX_INGRESS":          linkTCX,
	"BPF_TCX_EGRESS":           linkTCX,
	"BPF_NETKIT_PRIMARY":       "BPF_LINK_TYPE_NETKIT",
	"BPF_NETKIT_PEER":          "BPF_LINK_TYPE_NETKIT",
}

// instruction judges a newer instruction, and says whether verifiers look at it even if they do not reach it.
func (p *Pairing) instruction(n *bpfobj.Newer) (f Finding, anyhow bool) {
	f = p.k.judge(facts.Instruction(n.Name), InsnUnsupported)
	if f.Status == OK {
		return f, false
	}
	if f.Subject = n.Name; n.V4 {
		f.Subject += " (cpu v4)"
	}
	return f, n.Static || n.Atomic && !p.k.has(facts.InstructionAtomicOperation)
}

// OfInsn reports whether a finding is about code of a form that not every verifier knows.
func (f *Finding) OfInsn() bool { return f.Code == InsnUnsupported || f.Code == FeatureMissing }
