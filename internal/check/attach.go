package check

import (
	"fmt"
	"github.com/btfgen/btfgen/internal/engine"
	"github.com/btfgen/btfgen/internal/unwrap"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/rawbtf"
)

// attachNames returns the names to look for in a kernel's BTF for a program,
// and the pattern of functions that it attaches to.
func attachNames(name string) (names []string, pattern string) {
	s := sectionOf(name)
	if s == nil {
		return nil, ""
	}
	to := s.target(name)
	switch s.kind {
	case attachKprobe, attachFunc, attachModRet:
		fn, _, _ := strings.Cut(strings.TrimSpace(to), "+")
		if strings.ContainsAny(fn, "*?") {
			return nil, fn
		}
		return []string{fn}, ""
	case attachMulti:
		if strings.ContainsAny(to, "*?[") {
			return nil, to
		}
		return []string{to}, ""
	case attachSyscall:
		return allSyscallNames(to), ""
	case attachTP:
		return []string{"btf_trace_" + path.Base(to), "trace_event_raw_" + path.Base(to)}, ""
	case attachRawTP, attachBTFTP:
		return []string{"btf_trace_" + to}, ""
	case attachLSM:
		return []string{"bpf_lsm_" + to}, ""
	case attachIter:
		return []string{"bpf_iter_" + to}, ""
	}
	return nil, ""
}

// target judges what the program is attached to, and returns its model where
// the program sees one.
func (e *evaluation) target() (m *model) {
	s := sectionOf(e.pr.section)
	if s == nil || e.k.funcs == 0 && s.kind != attachTP && s.kind != attachRawTP && s.kind != attachBTFTP {
		if s != nil && s.kind != attachNone && s.kind != attachOps && s.kind != attachExt {
			e.add(Finding{Status: Unknown, Kind: KindTarget, Subject: e.pr.section, Reason: "the kernel's BTF has no functions at all"})
		}
		return nil
	}
	to := s.target(e.pr.section)
	names, pattern := attachNames(e.pr.section)
	if to == "" {
		return nil // the loader is told at run time
	}
	switch s.kind {
	case attachKprobe, attachMulti, attachSyscall:
		e.probe(names, pattern)
	case attachFunc, attachModRet, attachLSM:
		e.trampoline(s)
		m = e.function(names, s)
	case attachTP, attachRawTP, attachBTFTP:
		m = e.tracepoint(to, s)
	case attachIter:
		e.function(names, s)
	}
	return m
}

// probe judges kprobes. BTF does not list every function that can have one.
func (e *evaluation) probe(names []string, pattern string) {
	if pattern != "" {
		if i := slices.Index(e.k.want.patterns, pattern); i >= 0 && e.k.matches[i] == 0 {
			e.add(Finding{Status: MayFail, Kind: KindTarget, Subject: pattern, Reason: "no function in the kernel's BTF matches"})
		}
		return
	}
	if s := sectionOf(e.pr.section); s.kind == attachSyscall {
		names = syscallNames(s.target(e.pr.section), e.k.arch)
	}
	for _, n := range names {
		if _, ok := e.k.find(n, rawbtf.KindFunc); ok {
			return
		}
	}
	e.add(Finding{Status: MayFail, Kind: KindTarget, Subject: "function " + names[0], Reason: "not in the kernel's BTF, which does not list every function"})
}

// function judges what attaches to functions by their BTF.
func (e *evaluation) function(names []string, s *section) *model {
	if len(names) == 0 {
		return nil
	}
	y, ok := e.k.find(names[0], rawbtf.KindFunc)
	if !ok {
		e.add(Finding{Status: Fails, Kind: KindTarget, Subject: "function " + names[0], Reason: "not in the kernel's BTF"})
		return nil
	}
	if s.kind == attachIter {
		return nil
	}
	t := y.typ()
	return modelOf(y.view, t.Ref(), s.kind, s.prefix)
}

// trampolines are the versions since which programs can be attached to
// functions; x86_64 could from the first, and 0 is none yet.
var trampolines = map[string]uint64{"arm64": 6 << 16, "s390x": 6<<16 | 3<<8, "ppc64le": 6<<16 | 13<<8, "arm": 0}

// trampoline judges whether the machine's kernels can attach to functions,
// which BTF does not tell.
func (e *evaluation) trampoline(s *section) {
	since, ok := trampolines[e.k.arch]
	if !ok || since > 0 && (e.k.version.v == 0 || e.k.version.max() >= since) {
		return
	}
	reason := fmt.Sprintf("no kernel for %s before %d.%d has BPF trampolines", e.k.arch, since>>16, since>>8&255)
	if since == 0 {
		reason = "no kernel for " + e.k.arch + " has BPF trampolines"
	}
	e.add(Finding{Status: MayFail, Kind: KindTarget, Subject: s.prefix, Reason: reason})
}

// tracepoint judges tracepoints: those with BTF have a typedef each. System
// calls' events of the tracepoint file system have none, and old kernels have
// none at all.
func (e *evaluation) tracepoint(to string, s *section) *model {
	name := path.Base(to)
	y, ok := e.k.find("btf_trace_"+name, rawbtf.KindTypedef)
	f := Finding{Status: MayFail, Kind: KindTarget, Subject: "tracepoint " + name, Reason: "not in the kernel's BTF; it may be in a module"}
	_, any := e.k.find(anyTracepoint, rawbtf.KindTypedef)
	switch {
	case ok && s.kind == attachBTFTP:
		t := y.typ()
		if p, ok := y.view.SkipMods(t.Ref()); ok && p.Kind() == rawbtf.KindPtr {
			return modelOf(y.view, p.Ref(), s.kind, s.prefix)
		}
		return nil
	case ok, s.kind == attachTP && strings.HasPrefix(to, "syscalls/"):
		return nil
	case s.kind == attachBTFTP:
		f.Status, f.Reason = Fails, "not in the kernel's BTF"
	case !any:
		if _, ok := e.k.find("trace_event_raw_"+name, rawbtf.KindStruct); ok {
			return nil
		}
		f.Status, f.Reason = Unknown, "the kernel's BTF lists no tracepoints"
	}
	e.add(f)
	return nil
}

// anyTracepoint is one that every kernel has that lists any.
const anyTracepoint = "btf_trace_sched_switch"

// external notes what needs the running kernel's own BTF, so that a shipped
// one does not help.
func (e *evaluation) external() (notes []Finding) {
	note := func(subject, reason string) {
		notes = append(notes, Finding{Kind: KindExternal, Subject: subject, Reason: reason})
	}
	if s := sectionOf(e.pr.section); s != nil {
		switch s.kind {
		case attachFunc, attachModRet, attachLSM, attachBTFTP, attachIter, attachOps:
			note(s.prefix, "needs the running kernel's own BTF, whatever is shipped")
		}
	}
	seen := make(map[string]bool)
	e.eachUse(func(_ site, in *insn) {
		if x, ok := e.o.externs[in.ref.name]; ok && in.ref.kind == refExtern && !x.kconfig && x.id != 0 && !seen[x.name] {
			seen[x.name] = true
			note(x.name, "is looked up in the running kernel's own BTF, whatever is shipped")
		}
	})
	relo := unwrap.Object(e.o.relo)
	for _, r := range e.pr.relos {
		rec := &relo.Records()[r]
		if text := relo.Relocation(rec); rec.Kind == engine.KindTargetTypeID && !seen[text] {
			seen[text] = true
			note(text, fmt.Sprintf("is an ID in the BTF that the loader reads; of a shipped one it means nothing to the kernel (%s)", rec.Source))
		}
	}
	return notes
}
