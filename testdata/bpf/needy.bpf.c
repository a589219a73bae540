// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A map that no kernel takes and a kfunc that none has, each with a program that refers to it. libbpf loads
// nothing of this; cilium/ebpf loads what refers to neither.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, (1U << 3) | (1U << 4)); // BPF_F_RDONLY and BPF_F_WRONLY, one of which is allowed
	__type(key, u32);
	__type(value, u32);
} refused SEC(".maps");

extern void bpf_no_such_kfunc(void) __ksym;

SEC("socket") int plain(void *ctx)
{
	struct task_struct *t = NULL;

	return bpf_core_field_exists(t->pid);
}

static __noinline int look_up(void)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&refused, &key) != NULL;
}

SEC("socket") int uses_map(void *ctx)
{
	return look_up();
}

SEC("socket") int uses_kfunc(void *ctx)
{
	bpf_no_such_kfunc();
	return 0;
}
