// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Functions of a struct_ops that write to the socket which they are given: kernels have a list of members for it. The name is not the last member, as
// it is in kernels' struct.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct sock___ops {
	unsigned long sk_pacing_rate;
} __attribute__((preserve_access_index));

struct inet_connection_sock {
	u64 icsk_ca_priv[13];
} __attribute__((preserve_access_index));

struct tcp_sock___ops {
	u32 snd_cwnd;
	u32 snd_cwnd_stamp;
	u32 snd_ssthresh;
	u32 srtt_us;
	u32 app_limited;
} __attribute__((preserve_access_index));

struct tcp_congestion_ops {
	char name[16];
	u32 (*ssthresh)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
};

SEC("struct_ops/undo_cwnd") u32 undo(u64 *ctx) { return 2; }

SEC("struct_ops/cong_avoid") void avoid(u64 *ctx) {}

/* Kernels let it write to these members, to the last ones since Linux 5.19, 6.2 and 6.12. */

SEC("struct_ops/ssthresh") u32 window(u64 *ctx)
{
	struct tcp_sock___ops *tp = (void *)ctx[0];

	tp->snd_cwnd = 10;
	tp->snd_ssthresh = 20;
	return 2;
}

SEC("struct_ops/ssthresh") u32 own(u64 *ctx)
{
	struct inet_connection_sock *icsk = (void *)ctx[0];

	icsk->icsk_ca_priv[2] = 1;
	return 2;
}

SEC("struct_ops/ssthresh") u32 rate(u64 *ctx)
{
	struct sock___ops *sk = (void *)ctx[0];

	sk->sk_pacing_rate = 1 << 20;
	return 2;
}

SEC("struct_ops/ssthresh") u32 limit(u64 *ctx)
{
	struct tcp_sock___ops *tp = (void *)ctx[0];

	tp->app_limited = 1;
	return 2;
}

SEC("struct_ops/ssthresh") u32 stamp(u64 *ctx)
{
	struct tcp_sock___ops *tp = (void *)ctx[0];

	tp->snd_cwnd_stamp = 1;
	return 2;
}

/* They never let it write to these: the first one is not in the list, the second one is of another struct. */

SEC("struct_ops/ssthresh") u32 time(u64 *ctx)
{
	struct tcp_sock___ops *tp = (void *)ctx[0];

	tp->srtt_us = 1;
	return 2;
}

SEC("struct_ops/ssthresh") u32 task(u64 *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	task->pid = 1;
	return 2;
}

#define OPS(NAME) \
	SEC(".struct_ops.link") struct tcp_congestion_ops ops_##NAME = { \
		.ssthresh = (void *)NAME, .undo_cwnd = (void *)undo, .cong_avoid = (void *)avoid, .name = "btfgen_" #NAME, \
	}

OPS(window);
OPS(own);
OPS(rate);
OPS(limit);
OPS(stamp);
OPS(time);
OPS(task);
