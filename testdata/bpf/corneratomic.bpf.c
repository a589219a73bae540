// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Atomic instructions with a result, since Linux 5.12, and without one; -mcpu=v3.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static u64 counter;

SEC("raw_tp/sys_enter") int adds(void *ctx)
{
	__sync_fetch_and_add(&counter, 1);
	return 0;
}

SEC("raw_tp/sys_enter") int fetches(void *ctx) { return __sync_fetch_and_add(&counter, 1) & 1; }

SEC("raw_tp/sys_enter") int exchanges(void *ctx) { return __sync_lock_test_and_set(&counter, 1) & 1; }

SEC("raw_tp/sys_enter") int compares(void *ctx) { return __sync_val_compare_and_swap(&counter, 1, 2) & 1; }

SEC("raw_tp/sys_enter") int ors(void *ctx) { return __sync_fetch_and_or(&counter, 1) & 1; }

SEC("raw_tp/sys_enter") int jumps(void *ctx) { return (u32)bpf_get_prandom_u32() > 7 ? 1 : 0; }
