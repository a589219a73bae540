// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A tree in the value of a map, since Linux 6.3.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct bpf_rb_root {
	u64 a, b;
} __attribute__((aligned(8)));

struct bpf_rb_node {
	u64 a, b, c;
	u64 d;
} __attribute__((aligned(8)));

struct bpf_spin_lock {
	u32 val;
};

struct element {
	struct bpf_rb_node node;
	u64 number;
};

struct value {
	struct bpf_spin_lock lock;
	struct bpf_rb_root root __attribute__((btf_decl_tag("contains:element:node")));
};

/* The kernel looks the type up. */
struct element *unused;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct value);
} trees SEC(".maps");

SEC("tc") int finds(void *ctx)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&trees, &key) && unused;
}
