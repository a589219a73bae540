// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A type of maps since Linux 5.11, and who may use it: LSM since then, programs of tracing since 5.13.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, 29); /* BPF_MAP_TYPE_TASK_STORAGE */
	__uint(map_flags, 1); /* BPF_F_NO_PREALLOC */
	__type(key, int);
	__type(value, u64);
} tasks SEC(".maps");

static __always_inline int get(void)
{
	return bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), NULL, 0) ? 0 : 0;
}

SEC("lsm/file_open") int of_hook(u64 *ctx) { return get(); }

SEC("fentry/vfs_read") int of_function(u64 *ctx) { return get(); }

SEC("lsm.s/file_open") int sleeps(u64 *ctx) { return get(); }

SEC("kprobe/vfs_read") int probed(void *ctx) { return get(); }

SEC("iter/task") int listed(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	asm volatile("" : "+r"(task)); /* or it is read twice */
	if (task)
		bpf_task_storage_get(&tasks, task, NULL, 0);
	return 0;
}
