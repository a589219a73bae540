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

/* With what newer verifiers know: no result, memory of any size, and arguments with tags. */
#define arg(tag) __attribute__((btf_decl_tag("arg:" tag)))

struct bpf_dynptr {
	__u64 words[2];
};

int last;
char bytes[8];

__noinline void of_nothing(int x)
{
	last = x;
	asm volatile("");
}

__noinline int of_anything(void *p)
{
	return p ? 1 : 2;
}

__noinline int of_tagged_context(void *ctx arg("ctx"))
{
	return ctx == NULL;
}

__noinline int of_some(struct pair *p arg("nonnull"))
{
	return p->first;
}

__noinline int of_task(struct task_struct *p arg("trusted"))
{
	return p == NULL;
}

__noinline int of_maybe_task(struct task_struct *p arg("trusted") arg("nullable"))
{
	return p == NULL;
}

__noinline int of_dynptr(struct bpf_dynptr *p)
{
	return bpf_dynptr_data(p, 0, 8) == NULL;
}

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8);
	__type(key, __u64);
	__type(value, __u64);
} counts SEC(".maps");

__noinline int of_key(__u64 *key)
{
	return key && bpf_map_lookup_elem(&counts, key);
}

static __noinline int of_own_key(__u64 *key)
{
	return bpf_map_lookup_elem(&counts, key) != NULL;
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

SEC("tc")
int calls_for_nothing(struct __sk_buff *skb)
{
	of_nothing(bpf_get_prandom_u32());
	return 0;
}

SEC("tc")
int calls_with_anything(struct __sk_buff *skb)
{
	return of_anything(skb);
}

SEC("tc")
int calls_with_tagged_context(struct __sk_buff *skb)
{
	return of_tagged_context(skb);
}

SEC("tc")
int calls_with_some(struct __sk_buff *skb)
{
	struct pair p = {bpf_get_prandom_u32(), 2};

	return of_some(&p);
}

SEC("fentry/vfs_open")
int calls_with_task(__u64 *ctx)
{
	last = of_task((void *)bpf_get_current_task_btf());
	return 0;
}

SEC("fentry/vfs_open")
int calls_with_maybe_task(__u64 *ctx)
{
	last = of_maybe_task((void *)bpf_get_current_task_btf());
	return 0;
}

SEC("tc")
int calls_with_dynptr(struct __sk_buff *skb)
{
	struct bpf_dynptr p;

	bpf_dynptr_from_mem(bytes, sizeof(bytes), 0, &p);
	return of_dynptr(&p);
}

SEC("tc")
int uses_key(struct __sk_buff *skb)
{
	__u64 key = bpf_get_prandom_u32();

	return of_key(&key);
}

SEC("tc")
int uses_own_key(struct __sk_buff *skb)
{
	__u64 key = bpf_get_prandom_u32();

	return of_own_key(&key);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
