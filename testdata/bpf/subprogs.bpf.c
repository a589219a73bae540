// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Relocations in subprograms: static functions that are not inlined, a global and a weak one, all in .text,
// called by programs of several sections, two of them in one section. Built for -mcpu=v3.
#include "kernel.h"

u64 out[8];

static __noinline u64 start_time(struct task_struct *t)
{
	return BPF_CORE_READ(t, group_leader, start_time);
}

static __noinline long state(struct task_struct *t)
{
	struct task_struct___old *old = (void *)t;

	if (bpf_core_field_exists(t->__state))
		return BPF_CORE_READ(t, __state);
	return BPF_CORE_READ(old, state);
}

/* Calls another subprogram, and has a relocation after the call. */
static __noinline u64 age(struct task_struct *t)
{
	u64 start = start_time(t);

	return bpf_ktime_get_ns() - start + BPF_CORE_READ(t, exit_code);
}

__noinline int parent_pid(u64 unused)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task();

	return BPF_CORE_READ(t, real_parent, tgid) + (int)unused;
}

__weak __noinline int effective_uid(u64 unused)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task();

	return BPF_CORE_READ(t, cred, euid.val) + (int)unused;
}

SEC("raw_tp/sys_enter")
int on_enter(void *ctx)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task();

	out[0] = age(t);
	out[1] = parent_pid(0);
	return 0;
}

SEC("raw_tp/sys_enter")
int on_enter_too(void *ctx)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task();

	out[2] = state(t);
	out[3] = BPF_CORE_READ(t, flags);
	return 0;
}

SEC("raw_tp/sys_exit")
int on_exit(void *ctx)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task();

	out[4] = age(t) + state(t);
	out[5] = effective_uid(0) + parent_pid(1);
	return 0;
}

/* Has no relocation itself, only its callee has. */
SEC("kprobe/do_exit")
int on_do_exit(void *ctx)
{
	out[6] = effective_uid(2);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
