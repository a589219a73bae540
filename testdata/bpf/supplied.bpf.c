// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Reads of types that no kernel has, but that a loader may add to the kernel's: a struct that another program of
// its own handed over. The object's own BTF has them, and so can be what the loader adds.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct my_state {
	u64 started;
	u32 count;
} __attribute__((preserve_access_index));

struct my_state___newer {
	u64 finished;
} __attribute__((preserve_access_index));

volatile u64 sink;

/* Verifiers refuse it where they reach it and there is no such type. */
SEC("raw_tp/sched_switch") int added(void *ctx)
{
	sink = bpf_core_field_offset(struct my_state, count);
	return 0;
}

SEC("raw_tp/sched_switch") int asked_for(void *ctx)
{
	if (bpf_core_type_exists(struct my_state))
		sink = bpf_core_field_offset(struct my_state, count);
	return 0;
}

SEC("raw_tp/sched_switch") int flavored(void *ctx)
{
	sink = bpf_core_field_offset(struct my_state___newer, finished);
	return 0;
}

/* The kernel's own goes first. */
struct task_struct___mine {
	u64 no_member_of_tasks;
} __attribute__((preserve_access_index));

SEC("raw_tp/sched_switch") int kernels_own(void *ctx)
{
	sink = bpf_core_field_offset(struct task_struct___mine, no_member_of_tasks);
	return 0;
}
