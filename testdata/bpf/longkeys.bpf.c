// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A map whose keys kernels before Linux 5.11 do not take. libbpf creates all maps of an object, so that there
// neither program loads.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct key {
	u8 bytes[600];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, struct key);
	__type(value, u32);
} long_keys SEC(".maps");

const volatile struct key zeros;

SEC("socket") int uses_map(void *ctx)
{
	return bpf_map_delete_elem(&long_keys, (void *)&zeros);
}

SEC("socket") int uses_none(void *ctx)
{
	struct task_struct *t = NULL;

	return bpf_core_field_exists(t->pid);
}
