// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A perf event array with a type of values, which cilium/ebpf takes for documentation, and libbpf hands to the kernel.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct event {
	u32 pid;
	char comm[16];
};

struct {
	__uint(type, 4); /* BPF_MAP_TYPE_PERF_EVENT_ARRAY */
	__type(key, u32);
	__type(value, struct event);
} events SEC(".maps");

SEC("raw_tp/sched_switch") int uses_map(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[2];
	struct event e = {.pid = BPF_CORE_READ(t, pid)};

	return bpf_perf_event_output(ctx, &events, -1, &e, sizeof(e)) != 0;
}

SEC("raw_tp/sched_switch") int uses_none(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[2];

	return BPF_CORE_READ(t, pid) == 1;
}
