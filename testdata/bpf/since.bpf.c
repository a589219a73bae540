// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What depends on the kernel's release or configuration, and bounds that no kernel takes.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

u64 sink;
volatile const bool never = false;

/* With CONFIG_BPF_KPROBE_OVERRIDE only. */
SEC("kprobe/vfs_read") int overrides(void *ctx)
{
	bpf_override_return(ctx, -1);
	return 0;
}

SEC("kprobe/vfs_read") int overrides_guarded(void *ctx)
{
	if (never)
		bpf_override_return(ctx, -1);
	return 0;
}

/* Programs of uprobes since Linux 6.18, those of kprobes never. */
SEC("uprobe") int user_written(u64 *ctx)
{
	ctx[1] = 0;
	return 0;
}

SEC("uprobe") int user_written_guarded(u64 *ctx)
{
	if (never)
		ctx[1] = 0;
	return 0;
}

SEC("uprobe") int user_read(u64 *ctx)
{
	sink = ctx[1];
	return 0;
}

SEC("kprobe/vfs_read") int kernel_written(u64 *ctx)
{
	ctx[1] = 0;
	return 0;
}

/* Verifiers before Linux 5.13 refuse the address of a function wherever it is. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

static long count(void *map, u32 *key, u64 *value, void *ctx)
{
	sink += *value;
	return 0;
}

SEC("raw_tp/sys_enter") int calls_back(void *ctx)
{
	bpf_for_each_map_elem(&counts, count, NULL, 0);
	return 0;
}

SEC("raw_tp/sys_enter") int calls_back_guarded(void *ctx)
{
	if (never)
		bpf_for_each_map_elem(&counts, count, NULL, 0);
	return 0;
}

/* do_mmap has 8 arguments, since Linux 6.6 9; udp_lib_setsockopt has 6, one of them a struct of 16 bytes. */
SEC("fentry/do_mmap") int many_arguments(u64 *ctx)
{
	return 0;
}

SEC("fentry/udp_lib_setsockopt") int wide_argument(u64 *ctx)
{
	return 0;
}

SEC("fentry/vfs_copy_file_range") int six_arguments(u64 *ctx)
{
	return 0;
}
