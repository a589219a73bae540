// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Relocations that the compiler accepts and every loader refuses for what they are in the object, whatever the
// kernel: an anonymous root, and an index beyond the end of the local array.
#include "kernel.h"

u64 out;

/* atomic_t itself is known by its typedef; an element of an array of them is not. */
SEC("raw_tp/sys_enter")
int anonymous_root(void *ctx)
{
	atomic_t *refs = ctx;

	out = BPF_CORE_READ(&refs[2], counter);
	return 0;
}

SEC("raw_tp/sys_enter")
int out_of_bounds(void *ctx)
{
	struct signal_struct *sig = ctx;

	out = BPF_CORE_READ(sig, rlim[16].rlim_cur);
	return 0;
}

SEC("raw_tp/sys_enter")
int valid(void *ctx)
{
	struct signal_struct *sig = ctx;

	out = BPF_CORE_READ(sig, rlim[15].rlim_cur);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
