// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Guards that hold by what is known of a number's size, before the read of a field that newer kernels lack.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

u64 out;
u32 table[16];

/* Until Linux 5.14. */
static __always_inline void old_state(void)
{
	struct task_struct___old *t = (void *)bpf_get_current_task();

	out = BPF_CORE_READ(t, state);
}

#define PROGRAM(name) SEC("raw_tp/sys_enter") int name(void *ctx)

PROGRAM(early_return)
{
	u64 n = out;

	if (n > 7)
		return 0;
	hide(n);
	if (n >= 8)
		old_state();
	return 0;
}

PROGRAM(early_return_32)
{
	u32 n = bpf_get_prandom_u32();

	if (n > 7)
		return 0;
	hide(n);
	if (n >= 8)
		old_state();
	return 0;
}

PROGRAM(not_enough)
{
	u64 n = out;

	if (n > 7)
		return 0;
	hide(n);
	if (n >= 7)
		old_state();
	return 0;
}

PROGRAM(signed_numbers)
{
	s32 n = bpf_get_prandom_u32();

	hide(n);
	if (n < 0)
		return 0;
	hide(n);
	if (n > 100)
		return 0;
	hide(n);
	if (n > 100)
		old_state();
	return 0;
}

PROGRAM(computed)
{
	u64 n = out;

	if (n < 2)
		return 0;
	hide(n);
	if (n > 5)
		return 0;
	n = n * 12 + 4; /* 28 to 64 */
	hide(n);
	if (n < 28 || n > 64)
		old_state();
	return 0;
}

PROGRAM(computed_not_enough)
{
	u64 n = out;

	if (n < 2)
		return 0;
	hide(n);
	if (n > 5)
		return 0;
	n = n * 12 + 4;
	hide(n);
	if (n > 63)
		old_state();
	return 0;
}

PROGRAM(masked)
{
	u64 n = out;

	n &= 15;
	hide(n);
	if (n > 15)
		old_state();
	return 0;
}

PROGRAM(shifted)
{
	u32 n = bpf_get_prandom_u32();

	n >>= 27;
	hide(n);
	if (n > 31)
		old_state();
	return 0;
}

PROGRAM(loop)
{
	u64 n = out, sum = 0;

	if (n > 15)
		return 0;
#pragma clang loop unroll(disable)
	for (u64 i = 0; i < 10; i++) {
		hide(n);
		hide(i);
		if (n > 15 || i > 9)
			old_state();
		else
			sum += table[n];
	}
	out = sum;
	return 0;
}

/* A number that is kept on the stack over a call. */
PROGRAM(spilled)
{
	volatile u64 on_stack;
	u64 n = out;

	if (n > 7)
		return 0;
	on_stack = n;
	bpf_get_prandom_u32();
	n = on_stack;
	if (n > 7)
		old_state();
	return 0;
}

static __noinline u64 small(u64 n)
{
	hide(n);
	return n > 9 ? 9 : n;
}

PROGRAM(returned)
{
	u64 n = small(out);

	hide(n);
	if (n > 9)
		old_state();
	return 0;
}

/*
 * Reads of memory within bounds that != and == alone tell, of which verifiers learn something since Linux 6.8: of a
 * number up to 16 that is not 0, one is taken.
 */
PROGRAM(not_equal)
{
	u64 n = out;

	if (n > 16)
		return 0;
	hide(n);
	if (n == 0)
		return 0;
	n--;
	hide(n);
	out = table[n];
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64[16]);
} values SEC(".maps");

PROGRAM(not_equal_32)
{
	u32 key = 0, n = bpf_get_prandom_u32();
	u64 *v = bpf_map_lookup_elem(&values, &key);

	if (!v || n > 16)
		return 0;
	hide(n);
	if (n == 16)
		return 0;
	hide(n);
	n = 15 - n;
	hide(n);
	v[n]++;
	return 0;
}

PROGRAM(not_equal_helper)
{
	u32 key = 0, n = bpf_get_prandom_u32();
	u64 *v = bpf_map_lookup_elem(&values, &key);

	n &= 15;
	hide(n);
	if (!v || n == 0)
		return 0;
	hide(n);
	bpf_probe_read_kernel(&v[n - 1], 8, ctx);
	return 0;
}

PROGRAM(compared_after)
{
	u64 n = out;

	if (n > 16)
		return 0;
	hide(n);
	if (n == 0)
		return 0;
	n--;
	hide(n);
	if (n > 15)
		return 0;
	hide(n);
	out = table[n];
	return 0;
}
