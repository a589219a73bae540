// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * Reads of bytes of the stack that nothing wrote, by instructions and by helpers, which verifiers did not always accept.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u64);
} some SEC(".maps");

struct {
	__uint(type, 4 /* BPF_MAP_TYPE_PERF_EVENT_ARRAY */);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} events SEC(".maps");

/* The instructions are of assembly, as compilers leave out reads of variables without a value. */
#define READS(name, code) \
	SEC("kprobe/vfs_read") int name(void *ctx) \
	{ \
		asm volatile(code ::: "r1", "r2", "memory"); \
		return 0; \
	}

READS(reads_slot, "r1 = *(u64 *)(r10 - 8);")
READS(reads_half, "r1 = 0; *(u32 *)(r10 - 8) = r1; r1 = *(u64 *)(r10 - 8);")
READS(reads_copy, "r2 = r10; r2 += -16; r1 = 0; *(u64 *)(r2 + 8) = r1; r1 = *(u8 *)(r2 + 7);")
READS(reads_written, "r1 = 0; *(u64 *)(r10 - 8) = r1; r1 = *(u32 *)(r10 - 4);")
READS(adds_to, "r1 = 1; lock *(u64 *)(r10 - 8) += r1;")

static __noinline int fill(u64 *to) { *to = 1; return 0; }

SEC("kprobe/vfs_write") int written_by_function(void *ctx)
{
	u64 n;

	fill(&n);
	return n == 0;
}

#define BUFFER(section, name, code) \
	SEC(section) int name(void *ctx) \
	{ \
		u32 n = bpf_get_prandom_u32(); \
		char b[64], *all = b; \
		hide(all); \
		code; \
		return 0; \
	}

#define ZERO __builtin_memset(b, 0, sizeof(b)); hide(all)

BUFFER("kprobe/vfs_open", masked, bpf_probe_read_kernel(all, n & 63, ctx))
BUFFER("kprobe/vfs_open", compared, u64 size = n; hide(size); if (size > 64) return 0; bpf_probe_read_kernel(all, size, ctx))
BUFFER("kprobe/vfs_open", masked_zeroed, ZERO; bpf_probe_read_kernel(all, n & 63, ctx))
BUFFER("kprobe/vfs_open", constant, if (n) bpf_probe_read_kernel(all, 64, ctx))
/* Verifiers know that the size is 0. */
BUFFER("kprobe/vfs_open", only_0, u64 size = n; hide(size); if (size > 7) return 0; size &= 56; hide(size); bpf_probe_read_kernel(all, size, ctx))
BUFFER("kprobe/vfs_open", only_0_or_8, u64 size = n; size &= 56; hide(size); if (size > 8) return 0; bpf_probe_read_kernel(all, size, ctx))
BUFFER("kprobe/vfs_unlink", outputs, if (n) bpf_perf_event_output(ctx, &events, 0, all, 64))
BUFFER("kprobe/vfs_unlink", outputs_part, b[63] = 1; hide(all); if (n) bpf_perf_event_output(ctx, &events, 0, all, 64))
BUFFER("kprobe/vfs_unlink", outputs_zeroed, ZERO; if (n) bpf_perf_event_output(ctx, &events, 0, all, 64))
BUFFER("kprobe/vfs_unlink", looks_up, if (n) bpf_map_lookup_elem(&some, all))
BUFFER("kprobe/vfs_unlink", looks_up_zeroed, ZERO; if (n) bpf_map_lookup_elem(&some, all))
BUFFER("kprobe/vfs_rename", kprobe_stack, if (n) bpf_get_stack(ctx, all, 64, 0))
BUFFER("raw_tp/sched_switch", raw_tp_stack, if (n) bpf_get_stack(ctx, all, 64, 0))
BUFFER("raw_tp/sched_switch", raw_tp_stack_zeroed, ZERO; if (n) bpf_get_stack(ctx, all, 64, 0))
BUFFER("fentry/vfs_read", fentry_stack, if (n) bpf_get_stack(ctx, all, 64, 0))
