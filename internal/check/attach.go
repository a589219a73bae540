// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
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
	case bpfprog.AttachFunc, bpfprog.AttachModRet:
		_, to = CutModule(to)
		fallthrough
	case bpfprog.AttachKprobe:
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
		names = []string{"btf_trace_" + path.Base(to), "trace_event_raw_" + path.Base(to)}
		if call := systemCall(to); call != "" {
			names = append(append(names, noArguments+call), allSyscallNames(call)...)
		}
		return names, ""
	case bpfprog.AttachRawTP, bpfprog.AttachBTFTP:
		return []string{"btf_trace_" + to}, ""
	case bpfprog.AttachLSM:
		return []string{"bpf_lsm_" + to}, ""
	case bpfprog.AttachIter:
		return []string{"bpf_iter_" + to, iteratedHelpers(to)}, ""
	}
	return nil, ""
}

// CutModule cuts MODULE:FUNCTION, as libbpf does since its version 1.5 (find_kernel_btf_id in its src/libbpf.c); the module is "" for any.
func CutModule(to string) (module, function string) {
	if module, function, ok := strings.Cut(to, ":"); ok {
		return module, function
	}
	return "", to
}

// vmlinux is what MODULE:FUNCTION calls the kernel itself.
const vmlinux = "vmlinux"

// InModule reports whether libbpf looks in a module, "" for vmlinux, where one is named: by the beginning of its name, and in all for "".
func InModule(module, named string) bool { return strings.HasPrefix(cmp.Or(module, vmlinux), named) }

// systemCall is the system call whose event a tracepoint is, "" for none.
func systemCall(to string) string {
	name, ok := strings.CutPrefix(to, "syscalls/sys_")
	when, call, _ := strings.Cut(name, "_")
	if !ok || when != "enter" && when != "exit" {
		return ""
	}
	return call
}

// attachment judges what the program is attached to, and finds what it is given
// there.
func (e *evaluation) attachment() {
	s := e.pr.Attach
	if s != nil && s.Kind == bpfprog.AttachExt {
		e.add(Finding{Status: Unknown, Topic: TopicTarget, Subject: e.pr.Section, Reason: "the loader says of which program it replaces a function"})
	}
	if s == nil || !attachesByName(s.Kind) {
		return
	}
	switch s.Kind {
	case bpfprog.AttachTP, bpfprog.AttachRawTP, bpfprog.AttachBTFTP:
	default:
		if e.k.funcs == 0 {
			e.add(Finding{Status: Unknown, Topic: TopicTarget, Subject: e.pr.Section, Reason: "the kernel's BTF has no functions at all"})
			return
		}
	}
	to := s.Target(e.pr.Section)
	if to == "" {
		return // the loader is told at run time
	}
	names, pattern := attachNames(e.pr)
	switch s.Kind {
	case bpfprog.AttachKprobe, bpfprog.AttachMulti, bpfprog.AttachSyscall:
		e.probe(names, pattern)
	case bpfprog.AttachFunc, bpfprog.AttachModRet, bpfprog.AttachLSM:
		e.trampoline(s)
		e.function(to, names, s)
	case bpfprog.AttachTP, bpfprog.AttachRawTP, bpfprog.AttachBTFTP:
		e.tracepoint(to, s)
	case bpfprog.AttachIter:
		e.function(to, names, s)
	}
}

// kprobes is a function of every kernel that has them, and functions in its BTF.
const kprobes = "register_kprobe"

const withoutKprobes = "the kernel was built without kprobes"

// probe judges kprobes. BTF does not list every function that can have one.
func (e *evaluation) probe(names []string, pattern string) {
	if _, ok := e.k.find(kprobes, btfenc.KindFunc); !ok {
		e.add(Finding{Status: Fails, Topic: TopicTarget, Subject: e.pr.Attach.Prefix, Attach: true, Reason: withoutKprobes})
		return
	}
	if pattern != "" {
		switch i := slices.Index(e.k.want.patterns, pattern); {
		case i < 0:
			e.add(Finding{Status: Unknown, Topic: TopicTarget, Subject: pattern, Attach: true, Reason: (&limits.Exceeded{Max: limits.Patterns, What: "patterns of functions"}).Error()})
		case e.k.knowsSymbols():
			e.symbolPattern(i)
		case e.k.matches[i] == 0:
			e.add(Finding{Status: MayFail, Topic: TopicTarget, Subject: pattern, Attach: true, Reason: "no function in the kernel's BTF matches"})
		}
		return
	}
	if s := e.pr.Attach; s.Kind == bpfprog.AttachSyscall {
		names = syscallNames(s.Target(e.pr.Section), e.k.arch)
	}
	if e.k.knowsSymbols() {
		e.symbolProbe(names)
		return
	}
	for _, n := range names {
		if y, ok := e.k.find(n, btfenc.KindFunc); ok {
			e.inModule("function "+n, y, true)
			return
		}
	}
	e.add(Finding{Status: MayFail, Topic: TopicTarget, Subject: "function " + names[0], Attach: true, Reason: "not in the kernel's BTF, which does not list every function"})
}

// noType is why a relocation is not resolved where there is no candidate.
const noType = "no candidate"

// notThere is why a program cannot be attached to what it names.
const notThere = "not in the kernel's BTF"

// unknownModule ends the reason where the module that a program names is not known.
const unknownModule = " may have it, whose BTF is not there"

// function judges what attaches to functions by their BTF.
func (e *evaluation) function(to string, names []string, s *bpfprog.Section) {
	if len(names) == 0 {
		return
	}
	f := Finding{Topic: TopicTarget, Subject: "function " + names[0]}
	module, to := CutModule(to)
	found := e.k.functions(names[0], module)
	if len(found) == 0 {
		f.Status, f.Reason = Fails, notThere
		if module != "" && module != vmlinux && !e.k.known.modules {
			f.Status, f.Reason = MayFail, "module "+module+unknownModule
		}
		e.add(f)
		return
	}
	y := found[0]
	e.ebpfGoFinds(f, module, found)
	e.inModule(f.Subject, y, false)
	if s.Kind != bpfprog.AttachIter && y.module == "" && e.k.knowsSymbols() && e.k.known.symbols[names[0]].text == 0 {
		f.Status, f.Reason = e.k.notSymbol(names[0])
		e.add(f)
		return
	}
	t := y.typ()
	e.hook = newHook(names[0], y.view, t.Ref(), s)
	if e.hook == nil {
		return
	}
	if f.Status, f.Reason = e.hook.prototype(e.k); f.Status != OK {
		e.add(f)
	} else if status, why := e.hook.registers(e.k); status != OK && s.Kind != bpfprog.AttachIter {
		e.add(Finding{Status: status, Topic: TopicTarget, Subject: f.Subject, Attach: true, Reason: why})
	}
	if s.Kind == bpfprog.AttachLSM {
		e.disabledHook(to)
		if maySleep(s) {
			e.sleepless(to)
		}
	} else if s.Kind != bpfprog.AttachIter && maySleep(s) {
		e.sleeplessFunction(to)
	}
	if s.Kind == bpfprog.AttachModRet && !strings.HasPrefix(names[0], "security_") {
		f.Status, f.Reason = MayFail, "fmod_ret is only for functions that are made for error injection, which BTF does not tell"
		e.add(f)
	}
}

// functions returns those of a name in vmlinux, then in modules, or only where [InModule] says so.
func (k *inventory) functions(name, module string) (l []symbol) {
	i, ok := k.want.names[name]
	if !ok {
		return nil
	}
	for _, y := range k.symbols[i] {
		t := y.typ()
		if t.Kind() == btfenc.KindFunc && InModule(y.module, module) {
			l = append(l, y)
		}
	}
	return l
}

// ebpfGoFinds judges how ebpf-go looks for what libbpf has found (findTargetInKernel in its prog.go): by the whole name, of
// which there has to be one.
func (e *evaluation) ebpfGoFinds(f Finding, module string, found []symbol) {
	f.Status, f.Loader = Fails, EbpfGo
	same := 0
	for _, y := range found {
		if y.module == found[0].module {
			same++
		}
	}
	switch {
	case !e.ebpfGo:
		return
	case module != "":
		f.Reason = fmt.Sprintf("ebpf-go takes %s:%s for the function's name", module, strings.TrimPrefix(f.Subject, "function "))
	case same > 1:
		f.Reason = fmt.Sprintf("the kernel's BTF has %d functions of this name, of which ebpf-go takes none", same)
	default:
		return
	}
	e.add(f)
}

// trampolines say how the kernels of each machine attach programs to functions: arch_prepare_bpf_trampoline in
// arch/*/net/bpf_jit_comp*.c.
var trampolines = map[string]struct {
	since     release // 0 from the first kernels with BTF on
	registers int     // of 8 bytes, that the arguments of a function may take; 0 for as many as programs can have
	more      release // since when they may take as many as that
}{
	"x86_64":  {0, 6, linux(6, 6)},            // "bpf, x86: allow function arguments up to 12 for TRACING"
	"arm64":   {linux(6, 0), 8, linux(6, 16)}, // "bpf, arm64: Support up to 12 function arguments"
	"riscv64": {linux(6, 3), 8, linux(6, 11)}, // "riscv, bpf: Add 12-argument support for RV64 bpf trampoline"
	"s390x":   {linux(6, 3), 0, 0},
	"ppc64le": {linux(6, 13), 0, 0},
	"arm":     {noRelease, 0, 0},
}

// noRelease is later than every release.
const noRelease = ^release(0)

// trampoline judges whether the machine's kernels can attach to functions,
// which BTF does not tell.
func (e *evaluation) trampoline(s *bpfprog.Section) {
	since := trampolines[e.k.arch].since
	f := Finding{Status: MayFail, Topic: TopicTarget, Subject: s.Prefix, Attach: true}
	switch {
	case since == noRelease:
		f.Reason = "no kernel for " + e.k.arch + " has BPF trampolines"
	case e.k.before(since):
		f.Reason = fmt.Sprintf("no kernel for %s before %s has BPF trampolines", e.k.arch, since)
	default:
		return
	}
	e.add(f)
}

// registers judges whether the machine's trampoline passes on all arguments of a function. The kernel looks at that when it
// attaches a program.
func (h *hook) registers(k *inventory) (Status, string) {
	t := trampolines[k.arch]
	if n := h.words(); t.registers > 0 && n > t.registers {
		return k.refused(t.more, fmt.Sprintf("its arguments take %d registers, and programs get at most %d on %s", n, t.registers, k.arch))
	}
	return OK, ""
}

// tracepoint judges tracepoints: those with BTF have a typedef each. System
// calls' events of the tracepoint file system have none, and old kernels have
// none at all.
func (e *evaluation) tracepoint(to string, s *bpfprog.Section) {
	name := path.Base(to)
	y, ok := e.k.find("btf_trace_"+name, btfenc.KindTypedef)
	f := Finding{Status: MayFail, Topic: TopicTarget, Subject: "tracepoint " + name, Reason: "not in the kernel's BTF; it may be in a module"}
	_, any := e.k.find(anyTracepoint, btfenc.KindTypedef)
	record, hasRecord := e.k.find("trace_event_raw_"+name, btfenc.KindStruct)
	if s.Kind == bpfprog.AttachTP && hasRecord {
		e.given = recordSize(record)
	}
	switch {
	case ok:
		e.inModule("tracepoint "+name, y, s.Kind != bpfprog.AttachBTFTP)
		if s.Kind != bpfprog.AttachTP {
			e.traced(name, y, s)
		}
		return
	case s.Kind == bpfprog.AttachTP && strings.HasPrefix(to, "syscalls/"):
		e.syscallEvent(systemCall(to))
		return
	case s.Kind == bpfprog.AttachBTFTP:
		f.Status, f.Reason = Fails, notThere
	case !any:
		if hasRecord {
			return
		}
		f.Status, f.Reason = Unknown, "the kernel's BTF lists no tracepoints"
	}
	f.Attach = s.Kind != bpfprog.AttachBTFTP
	e.add(f)
}

// unnumbered are names of system calls for which only these machines have a number: every kernel has the code of the one, and the other
// is what arm calls it.
var unnumbered = map[string][]string{"sync_file_range2": {"arm", "ppc64le"}, "arm_sync_file_range": nil}

// noSuchCall ends the reason where a machine has no number for a system call.
const noSuchCall = " has no such system call"

// noArguments is what the names of the functions of system calls without arguments begin with, which have aliases that BTF does not list.
const noArguments = "__do_sys_"

// syscallEvent judges the events of a system call, which are there if it has a number. Where the names of the functions are those of the
// machine, BTF has nearly all of them: that of 5.10 lacks perf_event_open.
func (e *evaluation) syscallEvent(call string) {
	f := Finding{Topic: TopicTarget, Subject: "system call " + call, Attach: true}
	machines, some := unnumbered[call]
	switch {
	case call == "" || !e.k.wrapper:
		return
	case some && !slices.Contains(machines, e.k.arch):
		f.Status, f.Reason = Fails, e.k.arch+noSuchCall
	case slices.ContainsFunc(append(syscallNames(call, e.k.arch), noArguments+call), func(n string) bool { return len(e.k.functions(n, "")) > 0 }):
		return
	default:
		f.Status, f.Reason = MayFail, "not in the kernel's BTF, which lists nearly all system calls"
	}
	e.add(f)
}

// inModule notes that something is in a module, whatever is loaded on a host.
func (e *evaluation) inModule(subject string, y symbol, attach bool) {
	if why := y.needs(); why != "" {
		e.add(Finding{Status: MayFail, Topic: TopicTarget, Subject: subject, Attach: attach, Reason: why})
	}
}

// traced finds what a tracepoint with BTF gives to programs.
func (e *evaluation) traced(name string, y symbol, s *bpfprog.Section) {
	t := y.typ()
	p, ok := y.view.SkipMods(t.Ref())
	if !ok || p.Kind() != btfenc.KindPtr {
		return
	}
	h := newHook(name, y.view, p.Ref(), s)
	switch {
	case h == nil:
	case s.Kind == bpfprog.AttachBTFTP:
		e.hook = h
	default:
		e.given = 8 * int64(h.proto.Vlen()-min(1, h.proto.Vlen()))
	}
	if s.ProgType == "RAW_TRACEPOINT_WRITABLE" {
		e.add(Finding{
			Status: MayFail, Topic: TopicTarget, Subject: "tracepoint " + name, Attach: true,
			Reason: "must be one whose first argument programs may write to, which BTF does not tell",
		})
	}
}

// recordSize is where the last field of a tracepoint's record ends, without
// __data: see trace_event_get_offsets in kernel/trace/trace_events.c. It is 0 where that is not known.
func recordSize(y symbol) (end int64) {
	t := y.typ()
	for i := range t.Vlen() {
		m := t.Member(i)
		size, err := y.view.SizeOf(m.Type)
		if err != nil || m.BitSize != 0 {
			return 0
		}
		if i > 0 && !y.view.NameIs(m.NameOff, "__data") { // the first is what all records have
			end = int64(m.BitOffset/8) + int64(size)
		}
	}
	return end
}

// anyTracepoint is one that every kernel has that lists any.
const anyTracepoint = "btf_trace_sched_switch"

// external notes what needs the running kernel's own BTF, so that a shipped
// one does not help, and a name of which loaders make different things.
func (e *evaluation) external() (notes []Finding) {
	note := func(subject, reason string) {
		notes = append(notes, Finding{Topic: TopicExternal, Subject: subject, Reason: reason})
	}
	if s := e.pr.Attach; s != nil {
		if !s.Libbpf(e.pr.Section) {
			note(e.pr.Section, "is taken for "+s.Prefix+" by ebpf-go; libbpf does not know the name, so a loader that uses it has to set the type of program")
		}
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
		if why := e.o.records.disputed(r); why != "" {
			if text := e.o.records.text(r); !seen[why+text] {
				seen[why+text] = true
				note(text, why)
			}
		}
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
