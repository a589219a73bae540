// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * Global functions, which verifiers check on their own since Linux 5.6, with arguments that they did not always take.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

struct pair {
	__u64 first, second;
};

__noinline int of_number(__u32 x)
{
	return bpf_get_prandom_u32() + x;
}

__noinline int of_context(struct __sk_buff *skb)
{
	return skb == NULL;
}

__noinline int of_pair(struct pair *p)
{
	return p ? p->first : 1;
}

static __noinline int of_own_pair(struct pair *p)
{
	return p->first + p->second;
}

SEC("tc")
int calls_with_number(struct __sk_buff *skb)
{
	return of_number(3);
}

SEC("tc")
int calls_with_context(struct __sk_buff *skb)
{
	return of_context(skb);
}

SEC("tc")
int calls_with_pair(struct __sk_buff *skb)
{
	struct pair p = {bpf_get_prandom_u32(), 2};

	return of_pair(&p);
}

SEC("tc")
int calls_static(struct __sk_buff *skb)
{
	struct pair p = {bpf_get_prandom_u32(), 2};

	return of_own_pair(&p);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
