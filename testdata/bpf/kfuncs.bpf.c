// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What needs the running kernel's own BTF, whatever is shipped: kfuncs and a typed ksym, with relocations
// beside them; a kfunc that may be missing, and settings of the kernel's build.
#include "kernel.h"

extern struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;
extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym __weak;
extern int bpf_no_such_kfunc(int) __ksym __weak;

extern const struct rq runqueues __ksym;

extern unsigned int CONFIG_HZ __kconfig;
extern bool CONFIG_NO_SUCH_OPTION __kconfig __weak;

u64 busy, ticks, children;

SEC("tp_btf/task_newtask")
int BPF_PROG(task_newtask, struct task_struct *task, u64 clone_flags)
{
	struct task_struct *ref = bpf_task_acquire(task), *parent;

	if (!ref)
		return 0;
	ticks += ref->start_time / (1000000000 / CONFIG_HZ);
	bpf_task_release(ref);

	parent = bpf_task_from_pid(BPF_CORE_READ(task, real_parent, pid));
	if (parent) {
		children += parent->signal->nr_threads;
		bpf_task_release(parent);
	}

	if (CONFIG_NO_SUCH_OPTION || bpf_no_such_kfunc)
		busy += bpf_no_such_kfunc(1);
	return 0;
}

/* Needs a kernel with CONFIG_KALLSYMS_ALL. */
SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch)
{
	const struct rq *rq;

	for (u32 cpu = 0; cpu < 64; cpu++) {
		rq = bpf_per_cpu_ptr(&runqueues, cpu);
		if (!rq)
			break;
		busy += rq->nr_running > 1;
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
