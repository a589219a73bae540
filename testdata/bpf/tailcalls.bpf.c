// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Programs in the initial values of program arrays, and others that only tail calls reach.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

#define PROG_ARRAY 3 /* enum bpf_map_type */

#define PROGRAMS(n)                           \
	struct {                              \
		__uint(type, PROG_ARRAY);     \
		__uint(max_entries, n);       \
		__type(key, u32);             \
		__array(values, int(void *)); \
	}

int probe_tail(void *ctx);
int probe_placeholder(void *ctx);
int probe_elsewhere(void *ctx);
int multi_tail(void *ctx);
int multi_itself(void *ctx);
int traced_tail(void *ctx);

PROGRAMS(4) probes SEC(".maps") = {
	.values = { [0] = (void *)&probe_tail, [1] = (void *)&probe_placeholder, [3] = (void *)&probe_elsewhere },
};

PROGRAMS(1) multis SEC(".maps") = {
	.values = { [0] = (void *)&multi_tail },
};

PROGRAMS(1) itself SEC(".maps") = {
	.values = { [0] = (void *)&multi_itself },
};

PROGRAMS(1) traces SEC(".maps") = {
	.values = { [0] = (void *)&traced_tail },
};

PROGRAMS(8) by_loader SEC(".maps");

// Attached; the others of its array are reached from here.
SEC("kprobe/vfs_read") int probe(void *ctx)
{
	bpf_tail_call(ctx, &probes, 0);
	bpf_tail_call(ctx, &by_loader, 0);
	return 0;
}

SEC("kprobe") int probe_tail(void *ctx)
{
	bpf_tail_call(ctx, &probes, 1);
	return 0;
}

SEC("kprobe/placeholder_tail") int probe_placeholder(void *ctx)
{
	bpf_tail_call(ctx, &probes, 3);
	return 0;
}

// In an array, but its section names a function, which the loader may attach it to.
SEC("kprobe/no_such_function") int probe_elsewhere(void *ctx)
{
	return 0;
}

// Only the loader puts it into an array.
SEC("kprobe/no_such_tail") int probe_by_loader(void *ctx)
{
	return 0;
}

SEC("uprobe.multi//bin/sh:main") int multi(void *ctx)
{
	bpf_tail_call(ctx, &multis, 0);
	return 0;
}

SEC("uprobe.multi") int multi_tail(void *ctx)
{
	return 0;
}

// No other program refers to its array, so it is attached.
SEC("uprobe.multi") int multi_itself(void *ctx)
{
	bpf_tail_call(ctx, &itself, 0);
	return 0;
}

SEC("fentry/vfs_read") int traced(void *ctx)
{
	bpf_tail_call(ctx, &traces, 0);
	return 0;
}

// Loading it needs a function, whether it is attached or not.
SEC("fentry/placeholder_tail") int traced_tail(void *ctx)
{
	return 0;
}
