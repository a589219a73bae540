// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Two struct_ops: one that kernels have, and one that none has, beside a program that is no part of either.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct sock;

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	char name[16];
};

struct no_such_ops {
	int (*answer)(int question);
};

SEC("struct_ops/ssthresh") u32 ssthresh(u64 *ctx) { return 2; }
SEC("struct_ops/undo_cwnd") u32 undo_cwnd(u64 *ctx) { return 2; }
SEC("struct_ops/cong_avoid") void cong_avoid(u64 *ctx) {}
SEC("struct_ops/answer") int answer(u64 *ctx) { return 0; }

SEC(".struct_ops.link") struct tcp_congestion_ops control = {
	.ssthresh = (void *)ssthresh, .undo_cwnd = (void *)undo_cwnd, .cong_avoid = (void *)cong_avoid, .name = "btfgen_ops",
};

SEC(".struct_ops.link") struct no_such_ops missing = { .answer = (void *)answer };

SEC("raw_tp/sys_enter") int beside(void *ctx) { return 0; }
