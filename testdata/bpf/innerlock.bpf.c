// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * A lock in the values of an inner map, which kernels before 6.2 do not create.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct bpf_spin_lock { u32 val; };
struct locked { struct bpf_spin_lock lock; u32 n; };

struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct locked);
} first SEC(".maps");

struct {
	__uint(type, 12); /* BPF_MAP_TYPE_ARRAY_OF_MAPS */
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct inner);
} outer SEC(".maps") = { .values = { &first } };

SEC("tc") int lookup(void *ctx)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&outer, &zero) == NULL;
}
