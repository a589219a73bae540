// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Helpers that programs of some types may call, or may call since some release.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

u64 sink;

SEC("socket") int cookie(struct __sk_buff *skb)
{
	sink = bpf_get_socket_cookie(skb);
	return 0;
}

SEC("raw_tp/sys_enter") int cookie_of_tracepoint(void *ctx)
{
	sink = bpf_get_socket_cookie(ctx);
	return 0;
}

/* A guard that verifiers see keeps them from the call. */
SEC("raw_tp/sys_enter") int cookie_guarded(void *ctx)
{
	struct task_struct *t = NULL;

	if (!bpf_core_field_exists(t->pid))
		sink = bpf_get_socket_cookie(ctx);
	return 0;
}

/* Programs that have nothing to do with tasks may ask for them since Linux 6.18 at the latest, not yet in 6.12. */
SEC("xdp") int user(struct xdp_md *ctx)
{
	sink = bpf_get_current_uid_gid();
	return XDP_PASS;
}

SEC("fentry/vfs_open") int sleeps(u64 *ctx)
{
	u64 word = 0;

	bpf_copy_from_user(&word, sizeof(word), (void *)ctx[0]);
	sink = word;
	return 0;
}

/* What is iterated over decides, too: sockets of TCP since Linux 5.15, and none of UDP. */
SEC("iter/tcp") int options_of_tcp(u64 *ctx)
{
	char name[16] = {};

	if (ctx[1])
		bpf_getsockopt((void *)ctx[1], 6 /* SOL_TCP */, 13 /* TCP_CONGESTION */, name, sizeof(name));
	return 0;
}

SEC("iter/udp") int options_of_udp(u64 *ctx)
{
	char name[16] = {};

	if (ctx[1])
		bpf_getsockopt((void *)ctx[1], 6 /* SOL_TCP */, 13 /* TCP_CONGESTION */, name, sizeof(name));
	return 0;
}
