package check

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfprog"
	"github.com/btfgen/btfgen/internal/btfenc"
	"github.com/btfgen/btfgen/internal/limits"
)

// attachNames returns the names to look for in a kernel's BTF for a program,
// and the pattern of functions that it attaches to.
func attachNames(pr *bpfprog.Program) (names []string, pattern string) {
	s := pr.Attach
	if s == nil {
		return nil, ""
	}
	to := s.Target(pr.Section)
	switch s.Kind {
	case bpfprog.AttachKprobe, bpfprog.AttachFunc, bpfprog.AttachModRet:
		fn, _, _ := strings.Cut(strings.TrimSpace(to), "+")
		if strings.ContainsAny(fn, "*?") {
			return nil, fn
		}
		return []string{fn}, ""
	case bpfprog.AttachMulti:
		if strings.ContainsAny(to, "*?[") {
			return nil, to
		}
		return []string{to}, ""
	case bpfprog.AttachSyscall:
		return allSyscallNames(to), ""
	case bpfprog.AttachTP:
		return []string{"btf_trace_" + path.Base(to), "trace_event_raw_" + path.Base(to)}, ""
	case bpfprog.AttachRawTP, bpfprog.AttachBTFTP:
		return []string{"btf_trace_" + to}, ""
	case bpfprog.AttachLSM:
		return []string{"bpf_lsm_" + to}, ""
	case bpfprog.AttachIter:
		return []string{"bpf_iter_" + to}, ""
	}
	return nil, ""
}

// attachment judges what the program is attached to, and returns its model
// where the program sees one.
func (e *evaluation) attachment() (m *model) {
	s := e.pr.Attach
	if s == nil {
		return nil
	}
	switch s.Kind {
	case bpfprog.AttachNone, bpfprog.AttachOps, bpfprog.AttachExt:
		return nil
	case bpfprog.AttachTP, bpfprog.AttachRawTP, bpfprog.AttachBTFTP:
	default:
		if e.k.funcs == 0 {
			e.add(Finding{Status: Unknown, Topic: TopicTarget, Subject: e.pr.Section, Reason: "the kernel's BTF has no functions at all"})
			return nil
		}
	}
	to := s.Target(e.pr.Section)
	if to == "" {
		return nil // the loader is told at run time
	}
	names, pattern := attachNames(e.pr)
	switch s.Kind {
	case bpfprog.AttachKprobe, bpfprog.AttachMulti, bpfprog.AttachSyscall:
		e.probe(names, pattern)
	case bpfprog.AttachFunc, bpfprog.AttachModRet, bpfprog.AttachLSM:
		e.trampoline(s)
		m = e.function(names, s)
	case bpfprog.AttachTP, bpfprog.AttachRawTP, bpfprog.AttachBTFTP:
		m = e.tracepoint(to, s)
	case bpfprog.AttachIter:
		e.function(names, s)
	}
	return m
}

// probe judges kprobes. BTF does not list every function that can have one.
func (e *evaluation) probe(names []string, pattern string) {
	if pattern != "" {
		switch i := slices.Index(e.k.want.patterns, pattern); {
		case i < 0:
			e.add(Finding{Status: Unknown, Topic: TopicTarget, Subject: pattern, Reason: (&limits.Exceeded{Max: limits.Patterns, What: "patterns of functions"}).Error()})
		case e.k.matches[i] == 0:
			e.add(Finding{Status: MayFail, Topic: TopicTarget, Subject: pattern, Reason: "no function in the kernel's BTF matches"})
		}
		return
	}
	if s := e.pr.Attach; s.Kind == bpfprog.AttachSyscall {
		names = syscallNames(s.Target(e.pr.Section), e.k.arch)
	}
	for _, n := range names {
		if _, ok := e.k.find(n, btfenc.KindFunc); ok {
			return
		}
	}
	e.add(Finding{Status: MayFail, Topic: TopicTarget, Subject: "function " + names[0], Reason: "not in the kernel's BTF, which does not list every function"})
}

// function judges what attaches to functions by their BTF.
func (e *evaluation) function(names []string, s *bpfprog.Section) *model {
	if len(names) == 0 {
		return nil
	}
	y, ok := e.k.find(names[0], btfenc.KindFunc)
	if !ok {
		e.add(Finding{Status: Fails, Topic: TopicTarget, Subject: "function " + names[0], Reason: "not in the kernel's BTF"})
		return nil
	}
	if s.Kind == bpfprog.AttachIter {
		return nil
	}
	t := y.typ()
	return modelOf(y.view, t.Ref(), s.Kind, s.Prefix)
}

// trampolines are the versions since which programs can be attached to
// functions; x86_64 could from the first, and 0 is none yet.
var trampolines = map[string]uint64{"arm64": 6 << 16, "s390x": 6<<16 | 3<<8, "ppc64le": 6<<16 | 13<<8, "arm": 0}

// trampoline judges whether the machine's kernels can attach to functions,
// which BTF does not tell.
func (e *evaluation) trampoline(s *bpfprog.Section) {
	since, ok := trampolines[e.k.arch]
	if !ok || since > 0 && !e.k.before(since) {
		return
	}
	reason := fmt.Sprintf("no kernel for %s before %d.%d has BPF trampolines", e.k.arch, since>>16, since>>8&255)
	if since == 0 {
		reason = "no kernel for " + e.k.arch + " has BPF trampolines"
	}
	e.add(Finding{Status: MayFail, Topic: TopicTarget, Subject: s.Prefix, Reason: reason})
}

// tracepoint judges tracepoints: those with BTF have a typedef each. System
// calls' events of the tracepoint file system have none, and old kernels have
// none at all.
func (e *evaluation) tracepoint(to string, s *bpfprog.Section) *model {
	name := path.Base(to)
	y, ok := e.k.find("btf_trace_"+name, btfenc.KindTypedef)
	f := Finding{Status: MayFail, Topic: TopicTarget, Subject: "tracepoint " + name, Reason: "not in the kernel's BTF; it may be in a module"}
	_, any := e.k.find(anyTracepoint, btfenc.KindTypedef)
	switch {
	case ok && s.Kind == bpfprog.AttachBTFTP:
		t := y.typ()
		if p, ok := y.view.SkipMods(t.Ref()); ok && p.Kind() == btfenc.KindPtr {
			return modelOf(y.view, p.Ref(), s.Kind, s.Prefix)
		}
		return nil
	case ok, s.Kind == bpfprog.AttachTP && strings.HasPrefix(to, "syscalls/"):
		return nil
	case s.Kind == bpfprog.AttachBTFTP:
		f.Status, f.Reason = Fails, "not in the kernel's BTF"
	case !any:
		if _, ok := e.k.find("trace_event_raw_"+name, btfenc.KindStruct); ok {
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
		notes = append(notes, Finding{Topic: TopicExternal, Subject: subject, Reason: reason})
	}
	if s := e.pr.Attach; s != nil {
		switch s.Kind {
		case bpfprog.AttachFunc, bpfprog.AttachModRet, bpfprog.AttachLSM, bpfprog.AttachBTFTP, bpfprog.AttachIter, bpfprog.AttachOps:
			note(s.Prefix, "needs the running kernel's own BTF, whatever is shipped")
		}
	}
	seen := make(map[string]bool)
	e.eachUse(func(u *use) {
		if x := e.o.extern(u.in); x != nil && x.Kind == bpfprog.ExternKsym && x.Type != 0 && !seen[x.Name] {
			seen[x.Name] = true
			note(x.Name, "is "+lookedUp)
		}
	})
	for _, r := range e.pr.Records {
		if !e.o.records.asksForID(r) {
			continue
		}
		if text := e.o.records.text(r); !seen[text] {
			seen[text] = true
			note(text, fmt.Sprintf("is %s (%s)", idOfLoader, e.o.records.source(r)))
		}
	}
	return notes
}
