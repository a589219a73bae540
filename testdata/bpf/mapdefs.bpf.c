// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Definitions of maps that libbpf and cilium/ebpf complete differently: cilium/ebpf drops the type of values of a ring buffer, and sets
// the sizes of a perf event array; libbpf rounds the size of a ring buffer up. A map without a size gets one from its loader.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct event {
	u64 a;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
	__type(value, struct event);
} typed SEC(".maps");

struct {
	__uint(type, 4 /* BPF_MAP_TYPE_PERF_EVENT_ARRAY */);
} unsized SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 5000);
} uneven SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, u32);
	__type(value, u32);
} empty SEC(".maps");

SEC("socket") int plain(void *ctx)
{
	return 0;
}

SEC("tp/raw_syscalls/sys_enter") int sends_typed(void *ctx)
{
	return bpf_ringbuf_query(&typed, 0) != 0;
}

SEC("tp/raw_syscalls/sys_enter") int sends_unsized(void *ctx)
{
	u32 x = 0;

	return bpf_perf_event_output(ctx, &unsized, 0, &x, sizeof(x));
}

SEC("tp/raw_syscalls/sys_enter") int sends_uneven(void *ctx)
{
	return bpf_ringbuf_query(&uneven, 0) != 0;
}

SEC("socket") int looks_up_empty(void *ctx)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&empty, &key) != NULL;
}
