// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Network programs of many types in one object: xdp, tc, cgroup_skb, cgroup/connect4, sockops and a socket
// filter. Their contexts are relocated as in sources that include a vmlinux.h, stores among them.
#include "kernel.h"

struct iphdr_min {
	u8 ver_ihl, tos;
	__be16 tot_len, id, frag_off;
	u8 ttl, protocol;
	u16 check;
	__be32 saddr, daddr;
};

struct ethhdr_min {
	u8 dst[6], src[6];
	__be16 proto;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, u64);
} packets SEC(".maps");

static __always_inline void count(u32 proto)
{
	u64 *n = bpf_map_lookup_elem(&packets, &proto);

	if (n)
		(*n)++;
}

SEC("xdp")
int xdp_count(struct xdp_md *ctx)
{
	struct ethhdr_min *eth = (void *)(long)ctx->data;
	struct iphdr_min *ip = (void *)(eth + 1);

	if ((void *)(ip + 1) > (void *)(long)ctx->data_end)
		return XDP_PASS;
	if (eth->proto != bpf_htons(ETH_P_IP) || ctx->rx_queue_index > 64)
		return XDP_PASS;
	count(ip->protocol);
	return ip->ttl ? XDP_PASS : XDP_DROP;
}

SEC("tc")
int tc_mark(struct __sk_buff *skb)
{
	if (skb->protocol != bpf_htons(ETH_P_IP))
		return 0;
	skb->mark = skb->hash & 0xff;
	skb->cb[2] = skb->len;
	skb->tc_classid = 1;
	return 0;
}

SEC("cgroup_skb/egress")
int cgroup_egress(struct __sk_buff *skb)
{
	return skb->len < 65536;
}

SEC("cgroup/connect4")
int connect4(struct bpf_sock_addr *ctx)
{
	if (ctx->user_ip4 == bpf_htonl(0x0a000001) && ctx->user_port == bpf_htons(53))
		ctx->user_port = bpf_htons(5353);
	return 1;
}

SEC("sockops")
int sock_ops(struct bpf_sock_ops *ops)
{
	if (ops->family == AF_INET && ops->local_port == 443)
		count(ops->op & 0xff);
	return 1;
}

SEC("socket")
int socket_filter(struct __sk_buff *skb)
{
	u8 proto;

	if (bpf_skb_load_bytes(skb, 14 + 9, &proto, 1))
		return 0;
	count(proto);
	return skb->len;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
