// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A type of maps since Linux 5.16.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, 30); /* BPF_MAP_TYPE_BLOOM_FILTER */
	__uint(max_entries, 8);
	__type(value, u64);
} seen SEC(".maps");

SEC("raw_tp/sys_enter") int looks(void *ctx)
{
	u64 value = 1;

	return bpf_map_peek_elem(&seen, &value) == 0;
}
