// SPDX-License-Identifier: Apache-2.0

package rule

import (
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
	all := []Finding{
		e.k.enumerator("BPF_PROG_TYPE_"+s.ProgType, ProgTypeMissing),
		e.k.judge(facts.Section(s.Prefix), FeatureMissing),
		e.k.judge(facts.ProgramTypeBuilt(s.ProgType), FeatureMissing),
	}
	if f := Untyped(e.pr, e.loader); f.Status != OK {
		f.Stops = e.loader.stops()
		all = append(all, f)
	}
	if s.ProgType == "KPROBE" && e.o.Version != 0 {
		all = append(all, e.kernelVersion())
	}
	if s.Type != "" && (!s.Optional || s.Type == skbVerdict) {
		f := e.k.enumerator(s.Type, AttachTypeMissing)
		// A kernel that does not check the type of attachment of a type of programs loads them with any: 5.10 loads kprobe.multi, 4.19 loads
		// xdp/devmap.
		f.Attach = !facts.ProgramType(s.ProgType).ChecksAttach
		if f.Status == Fails && s.ProgType == "SK_REUSEPORT" {
			f.Status = MayFail // a socket takes the program, and does not call it when it migrates
		}
		all = append(all, f)
	}
	all = append(all, e.links(s)...)
	if e.o.insns(e.pr) > maxInsns {
		all = append(all, e.k.judge(facts.LargePrograms, FeatureMissing))
	}
	all = append(all, e.specialValues()...)
	if maySleep(s) {
		all = append(append(all, e.sleepingMaps()...), e.sleepsAtTracepoint(s))
	} else if facts.ProgramType(s.ProgType).Preallocated {
		for _, fn := range e.pr.Funcs {
			if m := e.o.allocates(fn); m != nil {
				all = append(all, e.k.judge(facts.MapsOnDemand, FeatureMissing).named(m.Name))
				break
			}
		}
	}
	e.addAll(all)
}

// links judges the type of links that attachment needs.
func (e *Evaluation) links(s *bpfobj.Section) (all []Finding) {
	l := facts.LinkType(s.ProgType, s.Type)
	if l == "" {
		return nil
	}
	f := e.k.enumerator(l, LinkTypeMissing)
	if f.Attach = true; l == linkTCX && f.Status != OK {
		f.Status, f.Code = MayFail, LinkTypeTCX
	}
	all = append(all, f)
	if l == linkKprobeMulti && f.Status != Fails {
		f = e.k.judge(facts.KprobeMulti, FeatureMissing)
		f.Attach = true
		all = append(all, f)
	}
	return all
}

// sleepsAtTracepoint judges whether programs of tracepoints may sleep.
func (e *Evaluation) sleepsAtTracepoint(s *bpfobj.Section) (f Finding) {
	switch s.Kind {
	case bpfobj.AttachTP, bpfobj.AttachRawTP, bpfobj.AttachBTFTP:
		f = e.k.judge(facts.SleepingTracepoints, FeatureMissing)
		if f.Status == Fails && e.tracingSleeps() {
			f.Status, f.Decided, f.Witness, f.Doubt = MayFail, ByRelease, "", NotShown
		}
	}
	return f
}

// anyVersion is the number in a section "version" that all loaders but libbpf replace by that of the running kernel.
const anyVersion = 0xFFFFFFFE

// kernelVersion judges the number in a section "version": old kernels compare it with their own (bpf_prog_load in kernel/bpf/syscall.c).
func (e *Evaluation) kernelVersion() Finding {
	v := uint64(e.o.Version)
	if e.loader != Libbpf && v == anyVersion || e.k.version.Unknown == 0 && e.k.version.V == v {
		return Finding{}
	}
	return e.k.judge(facts.ProgramsOfAnyKernelVersion, FeatureMissing)
}

// skbVerdict is the only type of attachment that loaders may omit and attachment needs: the others are as old as their programs, or programs
// are attached without them.
const skbVerdict = "BPF_SK_SKB_VERDICT"

// Types of links with rules of their own.
const (
	linkTCX         = "BPF_LINK_TYPE_TCX"
	linkKprobeMulti = "BPF_LINK_TYPE_KPROBE_MULTI"
)

// instruction judges a newer instruction, and says whether verifiers look at it even if they do not reach it.
func (s *Scene) instruction(n *bpfobj.Newer) (f Finding, anyhow bool) {
	f = s.k.judge(facts.Instruction(n.Name), InsnUnsupported)
	if f.Status == OK {
		return f, false
	}
	if f.Subject = n.Name; n.V4 {
		f.Subject += " (cpu v4)"
	}
	return f, n.Static || n.Atomic && !s.k.has(facts.InstructionAtomicOperation)
}

// OfInsn reports whether a finding is about code of a form that not every verifier knows.
func (f *Finding) OfInsn() bool { return f.Code == InsnUnsupported || f.Code == FeatureMissing }
