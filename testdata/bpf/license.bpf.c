// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What the kernel keeps from programs whose license is not compatible with the GPL.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Apache-2.0";

u64 sink;

extern void bpf_rcu_read_lock(void) __ksym __weak;
extern void bpf_rcu_read_unlock(void) __ksym __weak;

SEC("raw_tp/sys_enter") int free_to_use(void *ctx)
{
	sink = bpf_get_current_pid_tgid();
	return 0;
}

/* Since Linux 5.8. */
SEC("raw_tp/sys_enter") int tells_time(void *ctx)
{
	sink = bpf_ktime_get_ns();
	return 0;
}

SEC("raw_tp/sys_enter") int reads(void *ctx)
{
	u64 word;

	bpf_probe_read_kernel(&word, sizeof(word), ctx);
	sink = word;
	return 0;
}

/* A guard that verifiers see keeps them from the call. */
SEC("raw_tp/sys_enter") int reads_guarded(void *ctx)
{
	struct task_struct *t = NULL;

	if (!bpf_core_field_exists(t->pid))
		sink = bpf_get_current_task();
	return 0;
}

/* Kfuncs are refused wherever the call is. */
SEC("tp_btf/sched_switch") int locks(u64 *ctx)
{
	struct task_struct *t = NULL;

	if (!bpf_core_field_exists(t->pid)) {
		bpf_rcu_read_lock();
		bpf_rcu_read_unlock();
	}
	return 0;
}

SEC("lsm/file_open") int decides(u64 *ctx)
{
	return 0;
}
