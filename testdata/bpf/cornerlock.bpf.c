// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A resilient lock in the value of a map, since Linux 6.15. Programs of tracing have it since 7.3.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct bpf_res_spin_lock {
	u32 val;
};

struct value {
	u64 number;
	struct bpf_res_spin_lock lock;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct value);
} locks SEC(".maps");

SEC("tc") int finds(void *ctx)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&locks, &key) != NULL;
}

SEC("kprobe/vfs_read") int probed(void *ctx)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&locks, &key) != NULL;
}
