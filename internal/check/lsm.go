// SPDX-License-Identifier: Apache-2.0

package check

import "strings"

// sleepless judges a hook of LSM that the kernel has for programs that may sleep.
func (e *evaluation) sleepless(hook string) {
	f := Finding{Status: Fails, Code: AttachTargetHookSleeps}
	switch p, ok := sleepableHooks()[hook]; {
	case ok:
		f = e.k.permits(p, AttachTargetHookSleeps)
	case noLongerSleepable(hook):
		f.Status, f.Doubt = MayFail, SomeKernels
	case e.k.has(hooksRead.next()) == present:
		f.Status, f.Until = MayFail, hooksRead
	}
	if f.Status != OK {
		f.Subject = "hook " + hook
		e.add(f)
	}
}

// settingInjection is the setting of kernels with functions that are made for error injection. Those of system calls are
// where there are wrappers of them (arch/*/include/asm/syscall_wrapper.h).
const settingInjection = settingPrefix + "FUNCTION_ERROR_INJECTION"

// sleeplessFunction judges a function of the kernel for programs of fentry, fexit and fmod_ret that may sleep
// (bpf_check_attach_target in kernel/bpf/verifier.c). Linux 7.2 without the setting let them have a system call.
func (e *evaluation) sleeplessFunction(name string) {
	f := Finding{Status: MayFail, Code: AttachTargetSleeps, Subject: "function " + name}
	_, injection := e.k.known.config[settingInjection]
	switch {
	case injection && e.k.wrapper && strings.HasPrefix(name, "__") && strings.Contains(name, "_sys_"):
		return
	case !injection && e.k.known.config != nil:
		f.Code, f.Name = AttachTargetSleepsUnset, settingInjection
		if e.k.has(sleepNeedsInjection) != present {
			f.Status = Fails
		}
	}
	e.add(f)
}

// disabledHook judges a hook of LSM that the kernel has.
func (e *evaluation) disabledHook(name string) {
	since, ok := disabledHooks()[name]
	if !ok {
		return
	}
	f := Finding{Status: Fails, Code: AttachTargetHook, Subject: "hook " + name}
	if e.k.has(since) != present {
		f.Status, f.From = MayFail, since
	}
	e.add(f)
}
