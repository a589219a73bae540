// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// kfuncs that programs of some types may call and those of others may not, or only since some release.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym __weak;
extern void bpf_task_release(struct task_struct *p) __ksym __weak;
extern void bpf_rcu_read_lock(void) __ksym __weak;
extern void bpf_rcu_read_unlock(void) __ksym __weak;

static __always_inline int hold(struct task_struct *t)
{
	if (!bpf_task_acquire || !bpf_task_release)
		return 0;
	t = bpf_task_acquire(t);
	if (t)
		bpf_task_release(t);
	return 0;
}

SEC("tp_btf/sched_switch") int traced(u64 *ctx)
{
	return hold((void *)ctx[1]);
}

SEC("kprobe/vfs_read") int probed(void *ctx)
{
	return hold(bpf_get_current_task_btf());
}

SEC("raw_tp/sched_switch") int raw(void *ctx)
{
	return hold(bpf_get_current_task_btf());
}

SEC("kprobe/vfs_read") int allowed(void *ctx)
{
	if (bpf_rcu_read_lock && bpf_rcu_read_unlock) {
		bpf_rcu_read_lock();
		bpf_rcu_read_unlock();
	}
	return 0;
}
