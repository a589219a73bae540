// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A type of maps since Linux 6.2.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, 32); /* BPF_MAP_TYPE_CGRP_STORAGE */
	__uint(map_flags, 1); /* BPF_F_NO_PREALLOC */
	__type(key, int);
	__type(value, u64);
} cgroups SEC(".maps");

SEC("tp_btf/cgroup_mkdir") int made(u64 *ctx)
{
	bpf_cgrp_storage_get(&cgroups, (struct cgroup *)ctx[0], NULL, 1);
	return 0;
}
