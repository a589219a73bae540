// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A tracer of TCP connections: kprobe and kretprobe (registers by architecture), a tracepoint, members of
// nested anonymous unions, a struct embedded as first member, per-CPU and LRU hashes.
#include "kernel.h"

struct conn {
	__be32 saddr, daddr;
	__be32 daddr6[4];
	__be16 sport, dport;
	u16 family;
	u64 bytes, srtt_us;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, struct sock *);
} connecting SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct sock *);
	__type(value, struct conn);
} conns SEC(".maps");

SEC("kprobe/tcp_v4_connect")
int BPF_KPROBE(tcp_v4_connect, struct sock *sk)
{
	u64 id = bpf_get_current_pid_tgid();

	bpf_map_update_elem(&connecting, &id, &sk, BPF_ANY);
	return 0;
}

SEC("kretprobe/tcp_v4_connect")
int BPF_KRETPROBE(tcp_v4_connect_ret, int ret)
{
	u64 id = bpf_get_current_pid_tgid();
	struct sock **skp = bpf_map_lookup_elem(&connecting, &id);
	struct conn c = {};
	struct sock *sk;

	if (!skp)
		return 0;
	sk = *skp;
	bpf_map_delete_elem(&connecting, &id);
	if (ret)
		return 0;
	c.family = BPF_CORE_READ(sk, __sk_common.skc_family);
	c.saddr = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
	c.daddr = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	c.dport = BPF_CORE_READ(sk, __sk_common.skc_dport);
	c.sport = BPF_CORE_READ((struct inet_sock *)sk, inet_sport);
	BPF_CORE_READ_INTO(&c.daddr6, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr32);
	bpf_map_update_elem(&conns, &sk, &c, BPF_ANY);
	return 0;
}

SEC("tracepoint/sock/inet_sock_set_state")
int set_state(struct trace_event_raw_inet_sock_set_state *ctx)
{
	struct sock *sk = (struct sock *)ctx->skaddr;
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct conn *c;

	if (ctx->family != AF_INET || ctx->newstate != TCP_CLOSE)
		return 0;
	c = bpf_map_lookup_elem(&conns, &sk);
	if (!c)
		return 0;
	c->bytes = BPF_CORE_READ(tp, bytes_received) + BPF_CORE_READ(tp, bytes_acked);
	c->srtt_us = BPF_CORE_READ(tp, srtt_us) >> 3;
	bpf_printk("%d bytes, state %d", (int)c->bytes, BPF_CORE_READ(sk, __sk_common.skc_state));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
