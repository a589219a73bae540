// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What programs of some types may do with maps, on some kernels.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, 1); /* BPF_F_NO_PREALLOC */
	__uint(max_entries, 8);
	__type(key, u32);
	__type(value, u64);
} demand SEC(".maps");

struct {
	__uint(type, 15); /* BPF_MAP_TYPE_SOCKMAP */
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} sockets SEC(".maps");

struct {
	__uint(type, 3); /* BPF_MAP_TYPE_PROG_ARRAY */
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} programs SEC(".maps");

/* Maps on demand in programs of perf events, since Linux 6.1. */
SEC("perf_event") int demands(void *ctx)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&demand, &key) != NULL;
}

SEC("kprobe/vfs_read") int demands_probed(void *ctx)
{
	u32 key = 0;

	return bpf_map_lookup_elem(&demand, &key) != NULL;
}

/* Until Linux 6.9; and in tc until 7.2. */
SEC("raw_tp/sys_enter") int deletes(void *ctx)
{
	u32 key = 0;

	return bpf_map_delete_elem(&sockets, &key) != 0;
}

SEC("tc") int deletes_tc(void *ctx)
{
	u32 key = 0;

	return bpf_map_delete_elem(&sockets, &key) != 0;
}

/* Since Linux 7.0 in programs that may sleep. */
SEC("lsm.s/bprm_committed_creds") int jumps(void *ctx)
{
	bpf_tail_call(ctx, &programs, 0);
	return 0;
}

SEC("raw_tp/sys_enter") int jumps_raw(void *ctx)
{
	bpf_tail_call(ctx, &programs, 0);
	return 0;
}
