// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What libbpf and cilium/ebpf treat differently: a variable whose type is a typedef, and a variable that only libbpf
// sets. A map of maps needs an inner one, which a loader may set.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

extern u32 LINUX_KERNEL_VERSION __kconfig;

SEC("socket") int plain(void *ctx)
{
	return 0;
}

SEC("socket") int asks_version(void *ctx)
{
	return LINUX_KERNEL_VERSION > 5;
}

struct {
	__uint(type, 13); // BPF_MAP_TYPE_HASH_OF_MAPS
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} outer SEC(".maps");

SEC("socket") int looks_up(void *ctx)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&outer, &key) != NULL;
}
