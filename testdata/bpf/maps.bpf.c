// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Maps whose definitions have to be right, and are: sizes, flags, inner maps, types of keys and values.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct key512 {
	u8 bytes[512];
};

struct lpm {
	u32 bits;
	u8 bytes[16];
};

struct large {
	u8 bytes[32768];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__uint(map_flags, 1 /* BPF_F_NO_PREALLOC */);
	__type(key, struct key512);
	__type(value, u32);
} long_keys SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__uint(map_flags, 1 << 10 /* BPF_F_MMAPABLE */);
	__type(key, u32);
	__type(value, u64);
} mapped SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct large);
} per_processor SEC(".maps");

struct {
	__uint(type, 11 /* BPF_MAP_TYPE_LPM_TRIE */);
	__uint(max_entries, 4);
	__uint(map_flags, 1 /* BPF_F_NO_PREALLOC */);
	__type(key, struct lpm);
	__type(value, u32);
} prefixes SEC(".maps");

struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, u32);
};

struct {
	__uint(type, 13 /* BPF_MAP_TYPE_HASH_OF_MAPS */);
	__uint(max_entries, 4);
	__type(key, u32);
	__array(values, struct inner);
} nested SEC(".maps");

SEC("socket") int uses_maps(void *ctx)
{
	struct task_struct *t = NULL;
	u32 zero = 0;
	u64 *n = bpf_map_lookup_elem(&mapped, &zero);
	void *m = bpf_map_lookup_elem(&nested, &zero);

	if (!bpf_core_field_exists(t->pid))
		return 1;
	return n && m ? *n : 0;
}
