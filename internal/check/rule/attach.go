// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"cmp"
	_ "embed"
	"path"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/limits"
)

// attachNames returns the names to look for in a kernel's BTF for a program,
// and the pattern of functions that it attaches to.
func attachNames(pr *bpfobj.Program) (names []string, pattern string) {
	s := pr.Attach
	if s == nil {
		return nil, ""
	}
	to := s.Target(pr.Section)
	switch s.Kind {
	case bpfobj.AttachFunc, bpfobj.AttachModRet:
		_, to = CutModule(to)
		fallthrough
	case bpfobj.AttachKprobe:
		fn, _, _ := strings.Cut(strings.TrimSpace(to), "+")
		if strings.ContainsAny(fn, "*?") {
			return nil, fn
		}
		return []string{fn}, ""
	case bpfobj.AttachMulti, bpfobj.AttachFuncMulti:
		if s.Kind == bpfobj.AttachFuncMulti {
			names = append(names, multiFunction)
			_, to = CutModule(to)
		}
		if to = multiPattern(to); strings.ContainsAny(to, "*?") {
			return names, to
		}
		return append(names, to), ""
	case bpfobj.AttachSyscall:
		return allSyscallNames(to), ""
	case bpfobj.AttachTP:
		names = []string{"btf_trace_" + path.Base(to), "trace_event_raw_" + path.Base(to)}
		if call := systemCall(to); call != "" {
			names = append(append(names, noArguments+call, enterRecord, exitRecord), allSyscallNames(call)...)
		}
		return names, ""
	case bpfobj.AttachRawTP, bpfobj.AttachBTFTP:
		return []string{"btf_trace_" + to, tracepointCaller + to}, ""
	case bpfobj.AttachLSM:
		return []string{"bpf_lsm_" + to}, ""
	case bpfobj.AttachIter:
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

// InModule reports whether libbpf looks for a target in a module ("" is vmlinux) if SEC names one. The beginning of a name is enough,
// and "" names all.
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
func (e *Evaluation) attachment() {
	s := e.pr.Attach
	if s != nil && s.Kind == bpfobj.AttachExt {
		e.add(Finding{Status: Unknown, Code: AttachTargetReplaced, Subject: e.pr.Section})
	}
	if s != nil && s.Kind == bpfobj.AttachOps {
		e.trampoline(s)
	}
	if s == nil || !attachesByName(s.Kind) || e.tail && !attachesByBTF(s.Kind) {
		return
	}
	switch s.Kind {
	case bpfobj.AttachTP, bpfobj.AttachRawTP, bpfobj.AttachBTFTP:
	default:
		if e.k.funcs == 0 {
			e.add(Finding{Status: Unknown, Code: AttachTargetNoFunctions, Subject: e.pr.Section})
			return
		}
	}
	to := s.Target(e.pr.Section)
	if s.Kind == bpfobj.AttachFuncMulti {
		e.eachFunction(to, s)
		return
	}
	if to == "" {
		// The kernel looks at the target when it loads the program.
		if attachesByBTF(s.Kind) {
			e.add(Finding{Status: Unknown, Code: AttachTargetLoader, Subject: e.pr.Section})
		}
		return // other kinds get their target when they are attached
	}
	names, pattern := attachNames(e.pr)
	switch s.Kind {
	case bpfobj.AttachKprobe, bpfobj.AttachMulti, bpfobj.AttachSyscall:
		e.probe(names, pattern)
	case bpfobj.AttachFunc, bpfobj.AttachModRet, bpfobj.AttachLSM:
		e.trampoline(s)
		e.function(to, names, s)
	case bpfobj.AttachTP, bpfobj.AttachRawTP, bpfobj.AttachBTFTP:
		e.tracepoint(to, s)
	case bpfobj.AttachIter:
		e.function(to, names, s)
	}
}

// kprobes is a function of every kernel that has them, and functions in its BTF.
const kprobes = "register_kprobe"

// probe judges kprobes. BTF does not list every function that can have one.
func (e *Evaluation) probe(names []string, pattern string) {
	if _, ok := e.k.find(kprobes, btf.KindFunc); !ok {
		e.add(Finding{Status: Fails, Code: AttachTargetKprobes, Subject: e.pr.Attach.Prefix, Attach: true})
		return
	}
	if pattern != "" {
		switch i, ok := e.pattern(pattern); {
		case !ok:
		case e.k.knowsSymbols():
			e.symbolPattern(i)
		case e.k.matches[i] == 0:
			e.add(Finding{Status: MayFail, Code: AttachTargetPattern, Subject: pattern, Attach: true})
		}
		return
	}
	s := e.pr.Attach
	atEntry := strings.HasPrefix(s.Prefix, "kprobe") && !strings.Contains(e.pr.Section, "+")
	if s.Kind == bpfobj.AttachKprobe && atEntry {
		if y, ok := e.k.find(names[0], btf.KindFunc); ok {
			t := y.typ()
			e.raw = newHook(names[0], y.view, t.Ref(), s)
		}
	}
	if s.Kind == bpfobj.AttachSyscall {
		names = syscallNames(s.Target(e.pr.Section), e.k.Arch)
	}
	if function, ok := e.entryOf(names); ok {
		e.blacklisted(function)
	}
	if e.k.knowsSymbols() {
		e.symbolProbe(names)
		return
	}
	for _, n := range names {
		if y, ok := e.k.find(n, btf.KindFunc); ok {
			e.inModule("function "+n, y, true)
			return
		}
	}
	e.add(Finding{Status: MayFail, Code: AttachTargetUnlisted, Subject: "function " + names[0], Attach: true})
}

// pattern returns the number of a pattern of functions, or adds that it was not compared with them.
func (e *Evaluation) pattern(text string) (i int, ok bool) {
	if i = e.k.want.pattern(text); i >= 0 && e.k.globs.Err() == nil {
		return i, true
	}
	e.add(Finding{
		Status: Unknown, Code: AttachTargetPatterns, Subject: text, Attach: true,
		Args: Args{Max: limits.Patterns},
	})
	return 0, false
}

// function judges what attaches to functions by their BTF.
func (e *Evaluation) function(to string, names []string, s *bpfobj.Section) {
	if len(names) == 0 {
		return
	}
	subject := "function " + names[0]
	module, _ := CutModule(to)
	found := e.k.functions(names[0], module)
	if len(found) == 0 {
		f := Finding{Status: Fails, Code: AttachTargetMissing, Subject: subject}
		if isPlaceholder(s.Target(e.pr.Section)) {
			f.Status, f.Code = Unknown, AttachTargetLoader
		} else if inModules(s.Kind, names[0]) && module != vmlinux {
			if f = e.k.elsewhere(f, facts.TargetsInModules, AttachTargetModule); f.Code == AttachTargetModule {
				f.Names = Names(module)
			}
		}
		e.add(f)
		return
	}
	y := found[0]
	e.inModule(subject, y, false)
	e.ebpfGoTarget(subject, found)
	if s.Kind != bpfobj.AttachIter && y.module == "" && e.k.knowsSymbols() && e.k.known.symbols[names[0]].text == 0 {
		f := e.k.notSymbol(names[0], targetSymbol)
		f.Subject = subject
		e.add(f)
		return
	}
	t := y.typ()
	e.hook = newHook(names[0], y.view, t.Ref(), s)
	if e.hook == nil {
		return
	}
	if s.Kind != bpfobj.AttachIter {
		e.tracer(subject)
		e.denied(subject, names[0])
	}
	e.prototype(subject)
	if s.Kind == bpfobj.AttachLSM {
		e.startsLSM()
		e.lsmHook(strings.TrimPrefix(names[0], "bpf_lsm_"))
	} else if s.Kind != bpfobj.AttachIter && maySleep(s) {
		e.mayInject(subject, names[0])
	}
	if s.Kind == bpfobj.AttachModRet && !strings.HasPrefix(names[0], "security_") {
		e.add(Finding{Status: MayFail, Code: AttachTargetInjection, Subject: subject})
	}
}

// multiFunction is what the verifier takes for the function that programs of fentry.multi and its like are attached to: it has no arguments.
const multiFunction = "bpf_multi_func"

// eachFunction judges what attaches to all functions with BTF that match a pattern. Kernels look at the functions when the program is attached
// (bpf_tracing_multi_attach in kernel/trace/bpf_trace.c): if one of them cannot have the program, none has it.
func (e *Evaluation) eachFunction(to string, s *bpfobj.Section) {
	if y, ok := e.k.find(multiFunction, btf.KindFunc); ok {
		t := y.typ()
		e.hook = newHook(s.Prefix, y.view, t.Ref(), s)
	}
	e.trampoline(s)
	if to == "" {
		return
	}
	names, pattern := attachNames(e.pr)
	if module, _ := CutModule(to); module != "" {
		// libbpf looks for the module when it loads the program.
		e.add(Finding{Status: MayFail, Code: ModuleNeeded, Subject: to, Args: Args{Names: Names(module)}})
		return
	}
	if pattern == "" {
		one := *e
		one.Findings = nil
		one.function(vmlinux+":"+to, names[1:], s)
		for _, f := range one.Findings {
			f.Attach = true
			e.add(f)
		}
		return
	}
	if i, ok := e.pattern(pattern); ok {
		f := Finding{Status: MayFail, Code: AttachTargetEach, Subject: pattern, Attach: true}
		if e.k.matches[i] == 0 {
			f.Status, f.Code = Fails, AttachTargetNoMatch
		}
		e.add(f)
	}
}

// inModules reports whether modules can have what programs of a kind are attached to. Hooks of LSM, what can be iterated over and system calls
// are only in the kernel itself.
func inModules(kind bpfobj.AttachKind, function string) bool {
	switch kind {
	case bpfobj.AttachLSM, bpfobj.AttachIter:
		return false
	}
	for _, prefix := range syscallPrefixes {
		if strings.HasPrefix(function, prefix) {
			return false
		}
	}
	return !strings.HasPrefix(function, noArguments) && !strings.HasPrefix(function, "__se_sys_")
}

// placeholderText has placeholders for attach targets. Loaders set the real targets.
//
//go:embed placeholders.txt
var placeholderText string

// isPlaceholder reports whether an attach target that the kernel lacks is a placeholder.
func isPlaceholder(to string) bool {
	for line := range strings.Lines(placeholderText) {
		if pattern, _, ok := strings.Cut(line, "  "); ok && pattern[0] != '#' {
			if matches, _ := path.Match(pattern, to); matches {
				return true
			}
		}
	}
	return false
}

// functions returns those of a name in vmlinux, then in modules, or only where [InModule] says so.
func (k *Inventory) functions(name, module string) (l []symbol) {
	i, ok := k.want.names[name]
	if !ok {
		return nil
	}
	for _, y := range k.symbols[i] {
		t := y.typ()
		if t.Kind() == btf.KindFunc && InModule(y.module, module) {
			l = append(l, y)
		}
	}
	return l
}

// tracepoint judges tracepoints: those with BTF have a typedef each. System
// calls' events of the tracepoint file system have none, and old kernels have
// none at all.
func (e *Evaluation) tracepoint(to string, s *bpfobj.Section) {
	name := path.Base(to)
	e.sleepingTracepoint(to, s)
	y, ok := e.k.find("btf_trace_"+name, btf.KindTypedef)
	f := Finding{Status: MayFail, Code: AttachTargetTracepoint, Subject: "tracepoint " + name}
	_, any := e.k.find(anyTracepoint, btf.KindTypedef)
	record, hasRecord := e.k.find("trace_event_raw_"+name, btf.KindStruct)
	if s.Kind == bpfobj.AttachTP && hasRecord {
		e.given = recordSize(record)
	}
	switch {
	case ok:
		e.inModule("tracepoint "+name, y, s.Kind != bpfobj.AttachBTFTP)
		if s.Kind != bpfobj.AttachTP {
			e.traced(name, y, s)
		}
		return
	case s.Kind == bpfobj.AttachTP && strings.HasPrefix(to, "syscalls/"):
		call := systemCall(to)
		if e.syscallEvent(call); call != "" {
			e.given = e.syscallRecord(to, call)
		}
		return
	case s.Kind == bpfobj.AttachBTFTP:
		f.Status, f.Code = Fails, AttachTargetMissing
		if isPlaceholder(name) {
			f.Status, f.Code = Unknown, AttachTargetLoader
		}
		f = e.k.elsewhere(f, facts.TargetsInModules, AttachTargetModule)
	case !any:
		if hasRecord {
			return
		}
		f.Status, f.Code = Unknown, AttachTargetTracepoints
	}
	f.Attach = s.Kind != bpfobj.AttachBTFTP
	e.add(f)
}

// sleepingTracepoint judges a tracepoint for programs that may sleep: only those of system calls can (tracepoint_is_faultable in
// include/linux/tracepoint.h, TRACE_EVENT_SYSCALL in include/trace/events). The kernel looks at those with BTF when it loads the program.
func (e *Evaluation) sleepingTracepoint(to string, s *bpfobj.Section) {
	name := path.Base(to)
	if !maySleep(s) || name == "sys_enter" || name == "sys_exit" || systemCall(to) != "" {
		return
	}
	f := Finding{Status: Fails, Code: AttachTargetSleepsTracepoint, Subject: "tracepoint " + name, Attach: s.Kind != bpfobj.AttachBTFTP}
	// Updates of 7.1 attach programs to all tracepoints of the tracepoint file system.
	if s.Kind == bpfobj.AttachTP && !e.k.has(facts.SleepingTracepoints) || e.tracingSleeps() {
		f.Status = MayFail
	}
	e.add(f)
}

// tracingSleeps reports whether the kernel may load the program as one that may sleep, whatever its tracepoint, as old kernels load programs of
// tracing.
func (e *Evaluation) tracingSleeps() bool {
	old := e.k.facts.Has(facts.SleepingTracingPrograms)
	return e.pr.Attach.Kind == bpfobj.AttachBTFTP && old.Presence != facts.No
}

// unnumbered are names of system calls for which only these machines have a number: every kernel has the code of the one, and the other
// is what arm calls it.
var unnumbered = map[string][]string{"sync_file_range2": {"arm", "ppc64le"}, "arm_sync_file_range": nil}

// OnSomeMachines reports whether a program is attached to the event of a system call that only some machines have.
func OnSomeMachines(pr *bpfobj.Program) bool {
	s := pr.Attach
	if s == nil || s.Kind != bpfobj.AttachTP {
		return false
	}
	_, some := unnumbered[systemCall(s.Target(pr.Section))]
	return some
}

// noArguments begins the names of functions of system calls without arguments. BTF does not list the aliases of these functions.
const noArguments = "__do_sys_"

// The records of the events of a system call, without the arguments.
const enterRecord, exitRecord = "syscall_trace_enter", "syscall_trace_exit"

// syscallRecord returns where the last field of an event of a system call ends (syscall_enter_define_fields in
// kernel/trace/trace_syscalls.c), at least; 0 if that is not known.
func (e *Evaluation) syscallRecord(to, call string) int64 {
	const most, field = 6, "nr" // arguments of a system call
	if y, ok := e.k.find(exitRecord, btf.KindStruct); ok && strings.HasPrefix(to, "syscalls/sys_exit_") {
		t := y.typ()
		return int64(t.Size())
	}
	y, ok := e.k.find(enterRecord, btf.KindStruct)
	if !ok || e.k.atLeast(facts.RecordsRead().Next()) {
		return 0
	}
	args := int64(most)
	names := []string{noArguments + call, "__se_sys_" + call}
	if !e.k.wrapper {
		names = append(names, "sys_"+call)
	}
	for _, n := range names {
		if y, ok := e.k.find(n, btf.KindFunc); ok {
			f := y.typ()
			proto := y.view.Type(f.Ref())
			switch {
			case proto.Vlen() == 1 && y.view.NameIs(proto.Param(0).NameOff, "__unused"):
				args = 0
			case !isWrapper(&proto):
				args = min(args, int64(proto.Vlen()))
			}
		}
	}
	t := y.typ()
	for i := range t.Vlen() {
		m := t.Member(i)
		if size, err := y.view.SizeOf(m.Type); args == 0 && err == nil && y.view.NameIs(m.NameOff, field) {
			return int64(m.BitOffset/8) + int64(size)
		}
	}
	return int64(t.Size()) + args*int64(y.view.PointerSize())
}

// isWrapper reports whether a function with this prototype is given the registers, in which a system call's arguments are: on ppc64le since
// 6.2 this is sys_NAME itself.
func isWrapper(proto *btf.Type) bool {
	if proto.Vlen() != 1 {
		return false
	}
	p, _ := proto.BTF().SkipMods(proto.Param(0).Type)
	if p.Kind() != btf.KindPtr {
		return false
	}
	to, _ := proto.BTF().SkipMods(p.Ref())
	return string(to.Name()) == "pt_regs"
}

// syscallEvent judges the events of a system call. They exist if it has a number. Where functions have the names of the machine, BTF
// lists nearly all system calls: that of 5.10 lacks perf_event_open.
func (e *Evaluation) syscallEvent(call string) {
	f := Finding{Subject: "system call " + call, Attach: true}
	machines, some := unnumbered[call]
	listed := func(name string) bool { return len(e.k.functions(name, "")) > 0 }
	switch {
	case call == "" || !e.k.wrapper:
		return
	case some && !slices.Contains(machines, e.k.Arch):
		f.Status, f.Code, f.Name = Fails, AttachTargetSyscall, e.k.Arch
	case slices.ContainsFunc(append(syscallNames(call, e.k.Arch), noArguments+call), listed):
		return
	default:
		f.Status, f.Code = MayFail, AttachTargetSyscallBTF
	}
	e.add(f)
}

// inModule notes that something is in a module, whatever is loaded on a host.
func (e *Evaluation) inModule(subject string, y symbol, attach bool) {
	switch {
	case y.module == "":
	case !attach && e.loader == Aya:
		e.add(Finding{Status: Fails, Code: AttachTargetAya, Subject: subject, Args: Args{Names: Names(y.module)}})
	default:
		e.add(Finding{
			Status: MayFail, Code: ModuleNeeded, Subject: subject, Attach: attach,
			Args: Args{Names: Names(y.module)},
		})
	}
}

// traced finds what a tracepoint with BTF gives to programs.
func (e *Evaluation) traced(name string, y symbol, s *bpfobj.Section) {
	t := y.typ()
	p, ok := y.view.SkipMods(t.Ref())
	if !ok || p.Kind() != btf.KindPtr {
		return
	}
	h := newHook(name, y.view, p.Ref(), s)
	switch {
	case h == nil:
	case s.Kind == bpfobj.AttachBTFTP:
		e.hook = h
	default:
		h.first = 1
		e.given, e.raw = 8*int64(h.params()), h
	}
	if s.ProgType == "RAW_TRACEPOINT_WRITABLE" {
		e.add(Finding{Status: MayFail, Code: AttachTargetWritable, Subject: "tracepoint " + name, Attach: true})
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
		// The first member is the header of all records.
		if i > 0 && !y.view.NameIs(m.NameOff, "__data") {
			end = int64(m.BitOffset/8) + int64(size)
		}
	}
	return end
}

// anyTracepoint is one that every kernel has that lists any.
const anyTracepoint = "btf_trace_sched_switch"
