// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A variable of an arena, and no map for it.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} other SEC(".maps");

int shared SEC(".addr_space.1");

SEC("socket") int plain(void *ctx)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&other, &key) != NULL;
}
