// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"strings"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
)

// trampoline judges whether the machine's kernels can attach to functions, which BTF does not show: arch_prepare_bpf_trampoline in
// arch/*/net/bpf_jit_comp*.c. Functions that ftrace knows also need its direct calls, without which register_fentry in
// kernel/bpf/trampoline.c returns ENOTSUPP. A struct_ops is registered with trampolines alone.
func (e *Evaluation) trampoline(s *bpfobj.Section) {
	fact := facts.Trampolines(e.k.Arch)
	if s.Kind == bpfobj.AttachOps {
		fact = facts.StructOps(e.k.Arch)
	}
	f := e.k.judge(fact, AttachTargetTrampoline)
	// No release has trampolines on arm.
	if e.k.Arch == "arm" {
		f = Finding{Status: MayFail, Code: AttachTargetTrampoline}
	}
	f.Subject, f.Attach, f.Name = s.Prefix, true, e.k.Arch
	e.addAll([]Finding{f})
}

// prototype judges whether programs can be attached to a function with the hook's prototype. Kernels look at its types when they load a
// program (btf_distill_func_proto in kernel/bpf/btf.c), and at the registers when they attach it.
func (e *Evaluation) prototype(subject string) {
	const most = 12 // MAX_BPF_FUNC_ARGS
	h, words, structs := e.hook, 0, 0
	fits := h.params() <= most && h.passes(h.proto.Ref(), true)
	for i := range h.params() {
		id := h.proto.Param(uint32(i)).Type
		fits = fits && id != 0 && h.passes(id, false)
		if t, _ := h.view.SkipMods(id); t.Kind() == btf.KindStruct && structs == 0 {
			structs = i + 1
		}
		size, _ := h.view.SizeOf(id)
		words += max(1, int(size+7)/8)
	}
	f := Finding{}
	if !fits {
		f = Finding{Status: Fails, Code: AttachTargetPrototype, Args: Args{Name: prototype(h.view, h.proto.ID)}}
	} else if structs > 0 {
		f = e.k.judge(facts.StructArguments, AttachTargetStruct)
		f.Count = int64(structs)
	}
	many := facts.ManyArguments(e.k.Arch)
	exceeds := many != facts.Every && many.Registers() > 0 && words > many.Registers()
	if f.Status == OK && exceeds && e.pr.Attach.Kind != bpfobj.AttachIter {
		f = e.k.judge(many, AttachTargetRegisters)
		f.Attach, f.Count, f.Max, f.Name = true, int64(words), int64(many.Registers()), e.k.Arch
	}
	f.Subject = subject
	e.addAll([]Finding{f})
}

// passes reports whether trampolines pass on an argument, or a result, of a type.
func (h *hook) passes(id btf.TypeID, result bool) bool {
	t, _ := h.view.SkipMods(id)
	switch k := t.Kind(); {
	case k == btf.KindInt, k.IsAnyEnum(), k == btf.KindPtr:
		return true
	case k == btf.KindVoid:
		return result
	case k == btf.KindStruct:
		return !result && t.Size() <= 16
	}
	return false
}

// lsmHook judges a hook of LSM of the kernel: whether programs can be attached to it, and whether they may sleep.
func (e *Evaluation) lsmHook(name string) {
	h := facts.HookNamed(name)
	var f, sleeps Finding
	if h.Disabled {
		f = e.k.permits(h.Attaches, AttachTargetHook)
		a := e.k.facts.Has(facts.DisabledHooks)
		if h.Attaches.Until.By == facts.DisabledHooks.Since() && a.Presence == facts.Yes && a.Decided == ByWitness {
			f = Finding{Status: Fails, Code: AttachTargetHook, Args: Args{Decided: ByWitness, Witness: a.Witness}}
		}
	}
	switch {
	case !maySleep(e.pr.Attach):
	case h.Sleepable:
		sleeps = e.k.permits(h.Sleeps, AttachTargetHookSleeps)
	case e.k.atLeast(facts.HooksRead().Next()):
		sleeps = Finding{Status: MayFail, Code: AttachTargetHookSleeps, Args: Args{Decided: ByRelease, Doubt: NotShown}}
	default:
		sleeps = Finding{Status: Fails, Code: AttachTargetHookSleeps}
	}
	f.Subject, sleeps.Subject = "hook "+name, "hook "+name
	e.addAll([]Finding{f, sleeps})
}

// testFunction is a function for tests of programs that may sleep, whether or not the kernel has error injection: since 5b481acab4ce bpf: do not
// rely on ALLOW_ERROR_INJECTION for fmod_ret.
const testFunction = "bpf_fentry_test1"

// mayInject judges a function for programs of fentry, fexit and fmod_ret that may sleep: it has to be made for error injection
// (bpf_check_attach_target in kernel/bpf/verifier.c), which BTF does not show; the functions of system calls are, if there are
// wrappers of them. Linux 7.2 without the setting let them have a system call, 6.12 did not.
func (e *Evaluation) mayInject(subject, name string) {
	f := e.k.judge(facts.ErrorInjection, AttachTargetSleepsUnset)
	call := e.k.wrapper && strings.HasPrefix(name, "__") && strings.Contains(name, "_sys_")
	switch {
	case name == testFunction && e.k.atLeast(Linux(6, 2)):
		return
	case f.Status == OK && !call:
		f = Finding{Status: MayFail, Code: AttachTargetSleeps}
	case f.Status == Fails && e.k.atLeast(Linux(6, 13)):
		f.Status, f.Doubt = MayFail, NotShown
	}
	if f.Code == AttachTargetSleepsUnset {
		f.Since, f.Name = 0, facts.ErrorInjection.Setting()
	}
	f.Subject = subject
	e.addAll([]Finding{f})
}
