// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What programs return, of which the verifier looks at some.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

u64 out;

SEC("fentry/vfs_open") int entry_0(u64 *ctx) { return 0; }

SEC("fentry/vfs_open") int entry_1(u64 *ctx) { return 1; }

SEC("fexit/vfs_open") int exit_1(u64 *ctx) { return 1; }

SEC("fexit/vfs_open") int exit_some(u64 *ctx)
{
	u64 n = out;

	if (n < 3)
		n = 4;
	hide(n);
	if (n > 8)
		n = 5;
	return n;
}

/* One way through it is well. */
SEC("fentry/vfs_open") int entry_at_times(u64 *ctx)
{
	if (out > 5)
		return 1;
	return 0;
}

/* The verifier sees that it returns 0. */
SEC("fentry/vfs_open") int entry_never(u64 *ctx)
{
	u64 n = out & 3;

	hide(n);
	if (n > 3)
		return 1;
	return 0;
}

SEC("raw_tp/sys_enter") int raw_1(void *ctx) { return 1; }

SEC("tp_btf/sched_switch") int tp_1(u64 *ctx) { return 1; }

SEC("kprobe/vfs_open") int kprobe_2(void *ctx) { return 2; }

SEC("xdp") int xdp_9(struct xdp_md *ctx) { return 9; }

SEC("iter/task") int iter_1(void *ctx) { return 1; }

SEC("iter/task") int iter_2(void *ctx) { return 2; }

SEC("cgroup_skb/egress") int egress_3(void *ctx) { return 3; }

SEC("cgroup_skb/egress") int egress_4(void *ctx) { return 4; }

SEC("cgroup_skb/ingress") int ingress_2(void *ctx) { return 2; }

SEC("cgroup/connect4") int connect_1(void *ctx) { return 1; }

SEC("cgroup/connect4") int connect_minus_1(void *ctx) { return -1; }

SEC("cgroup/recvmsg4") int recvmsg_0(void *ctx) { return 0; }

SEC("cgroup/bind4") int bind_4(void *ctx) { return 4; }

SEC("sk_lookup") int lookup_2(void *ctx) { return 2; }
