// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A sampling profiler: perf_event, with a context whose layout differs by architecture, a stack map, and a
// walk up the tree of cgroups through a flexible array that changed its name and element in 6.1.
#include "kernel.h"

struct cgroup___ids {
	int level;
	u64 ancestor_ids[];
} __attribute__((preserve_access_index));

struct key {
	u64 cgroup, period_log2;
	int stack;
	char comm[TASK_COMM_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(max_entries, 1024);
	__uint(key_size, sizeof(u32));
	__uint(value_size, 127 * sizeof(u64));
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, struct key);
	__type(value, u64);
} samples SEC(".maps");

const volatile int cgroup_level = 1;

static u64 ancestor_id(struct cgroup *cg, int level)
{
	struct cgroup___ids *old = (void *)cg;

	if (level < 0 || level > 16 || level > BPF_CORE_READ(cg, level))
		return 0;
	if (bpf_core_field_exists(cg->ancestors)) {
		struct cgroup *a = NULL;

		bpf_core_read(&a, sizeof(a), &cg->ancestors[level]);
		return BPF_CORE_READ(a, kn, id);
	}
	if (bpf_core_field_exists(old->ancestor_ids)) {
		u64 id = 0;

		bpf_core_read(&id, sizeof(id), &old->ancestor_ids[level]);
		return id;
	}
	return 0;
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct key key = {};
	u64 one = 1, *n;

	if (BPF_CORE_READ(task, flags) & PF_KTHREAD || !BPF_CORE_READ(task, mm))
		return 0;
	key.period_log2 = ctx->sample_period > 1000000;
	key.cgroup = ancestor_id(BPF_CORE_READ(task, cgroups, dfl_cgrp), cgroup_level);
	key.stack = bpf_get_stackid(ctx, &stacks, 0);
	BPF_CORE_READ_STR_INTO(&key.comm, task, comm);
	n = bpf_map_lookup_elem(&samples, &key);
	if (n)
		(*n)++;
	else
		bpf_map_update_elem(&samples, &key, &one, BPF_ANY);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
