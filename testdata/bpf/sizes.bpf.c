// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * Sizes that programs give to helpers, with bounds that verifiers did not always see: those of the lower half of a number since Linux 5.7,
 * and that a number is not 0 since 6.8.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

#define PROGRAM(name) SEC("tc") int name(struct __sk_buff *skb)

PROGRAM(half)
{
	char text[64] = {};
	u32 n = bpf_get_prandom_u32();

	if (n > sizeof(text))
		return 0;
	return bpf_csum_diff(NULL, 0, (void *)text, n, 0);
}

/* The upper half of what memory holds is known. */
PROGRAM(half_of_field)
{
	char text[64] = {};
	u32 n = skb->len;

	if (n > sizeof(text))
		return 0;
	return bpf_csum_diff(NULL, 0, (void *)text, n, 0);
}

PROGRAM(whole)
{
	char text[64] = {};
	u64 n = bpf_get_prandom_u32();

	hide(n);
	if (n > sizeof(text))
		return 0;
	hide(n);
	return bpf_csum_diff(NULL, 0, (void *)text, n, 0);
}

PROGRAM(half_masked)
{
	char text[64] = {};
	u32 n = bpf_get_prandom_u32();

	if (n > sizeof(text))
		return 0;
	hide(n);
	n &= 63;
	hide(n);
	return bpf_csum_diff(NULL, 0, (void *)text, n, 0);
}

PROGRAM(not_zero)
{
	char text[64] = {};
	u32 n = skb->len;

	if (n == 0)
		return 0;
	hide(n);
	if (n > sizeof(text))
		return 0;
	return bpf_skb_load_bytes(skb, 0, text, n);
}

PROGRAM(not_zero_masked)
{
	char text[64] = {};
	u32 n = skb->len & 63;

	hide(n);
	if (n == 0)
		return 0;
	return bpf_skb_load_bytes(skb, 0, text, n);
}

PROGRAM(greater)
{
	char text[64] = {};
	s64 n = skb->len;

	hide(n);
	if (n < 1)
		return 0;
	hide(n);
	if (n > sizeof(text))
		return 0;
	return bpf_skb_load_bytes(skb, 0, text, n);
}
