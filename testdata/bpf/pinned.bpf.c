// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A map with a value of pinning that no loader knows.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(pinning, 100);
	__type(key, u32);
	__type(value, u32);
} pins SEC(".maps");

SEC("socket") int plain(void *ctx)
{
	return 0;
}

SEC("socket") int looks_up(void *ctx)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&pins, &key) != NULL;
}
