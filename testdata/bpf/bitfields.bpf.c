// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Bitfields, read through a helper and directly: unsigned and signed ones, bits that move within a byte, and
// members that are a bitfield in some kernels and a plain member in others, in both directions.
#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Bits in 4.19, plain in 5.10; sk_userlocks followed between 6.1 and 6.12. */
struct sock___bits {
	unsigned int sk_padding : 1, sk_kern_sock : 1, sk_no_check_tx : 1, sk_no_check_rx : 1, sk_userlocks : 4,
		sk_protocol : 8, sk_type : 16;
};

/* Signed, -1 stands for the default: 9 bits in 6.1, a plain s16 in 6.12. */
struct ipv6_pinfo {
	s16 hop_limit : 9;
	s16 mcast_hops : 9;
};

struct ipv6_pinfo___plain {
	s16 hop_limit;
};

/* 2 bits in 6.12, a plain byte in 7.0. */
struct tcp_sock___bits {
	u8 chrono_type : 2;
	u8 nonagle : 4;
};

/* Plain in 6.12, one bit in 6.18. */
struct cfs_rq {
	int throttled;
};

/* A plain int in 4.19, one bit in 5.10. */
struct bio_map_data {
	bool is_our_pages : 1;
};

/* priv_flags: plain in 6.1, 32 bits at the start of a long in 6.12, within a struct group.
 * reg_state: an enum of 8 bits in 6.1, a byte in 6.12, and no type is both. threaded: one bit in 6.1, a byte in 6.12. */
struct net_device___flags {
	unsigned long priv_flags : 32;
	unsigned long lltx : 1;
	unsigned int threaded : 1;
	u8 reg_state;
};

struct net_device___enum {
	enum { REG_STATE } reg_state : 8;
};

/* Signed and unsigned bits over byte edges in 6.12, plain members in 6.18. */
struct printf_spec {
	int field_width : 24;
	unsigned int base : 8;
	int precision : 16;
};

#pragma clang attribute pop

u64 out[32];
s64 hops, precision;

SEC("raw_tp/sys_enter")
int probed(void *ctx)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task();
	struct signal_struct *sig = BPF_CORE_READ(t, signal);
	struct sk_buff *skb = ctx;

	out[0] = BPF_CORE_READ_BITFIELD_PROBED(t, sched_reset_on_fork);
	out[1] = BPF_CORE_READ_BITFIELD_PROBED(t, in_iowait);
	out[2] = BPF_CORE_READ_BITFIELD_PROBED(sig, is_child_subreaper);
	out[3] = BPF_CORE_READ_BITFIELD_PROBED(skb, cloned);
	out[4] = BPF_CORE_READ_BITFIELD_PROBED(skb, pkt_type);
	out[5] = BPF_CORE_READ_BITFIELD_PROBED(skb, ip_summed);
	return 0;
}

SEC("raw_tp/sys_enter")
int became_plain(void *ctx)
{
	struct sock___bits *bits = ctx;
	struct sock *plain = ctx;
	struct net_device___flags *dev = ctx;
	struct net_device___enum *enumed = ctx;
	struct tcp_sock___bits *tp = ctx;

	out[0] = BPF_CORE_READ_BITFIELD_PROBED(bits, sk_protocol);
	out[1] = BPF_CORE_READ_BITFIELD_PROBED(plain, sk_protocol);
	out[2] = BPF_CORE_READ_BITFIELD_PROBED(bits, sk_userlocks);
	if (bpf_core_field_exists(dev->reg_state))
		out[3] = BPF_CORE_READ_BITFIELD_PROBED(dev, reg_state);
	else
		out[3] = BPF_CORE_READ_BITFIELD_PROBED(enumed, reg_state);
	out[4] = BPF_CORE_READ_BITFIELD_PROBED(tp, chrono_type);
	if (bpf_core_field_exists(dev->threaded))
		out[5] = BPF_CORE_READ_BITFIELD_PROBED(dev, threaded);
	return 0;
}

SEC("raw_tp/sys_enter")
int became_bits(void *ctx)
{
	struct cfs_rq *cfs = ctx;
	struct bio_map_data *bmd = ctx;
	struct net_device___flags *dev = ctx;

	if (bpf_core_field_exists(cfs->throttled))
		out[0] = BPF_CORE_READ_BITFIELD_PROBED(cfs, throttled);
	out[1] = BPF_CORE_READ_BITFIELD_PROBED(bmd, is_our_pages);
	out[2] = BPF_CORE_READ_BITFIELD_PROBED(dev, priv_flags);
	if (bpf_core_field_exists(dev->lltx))
		out[3] = BPF_CORE_READ_BITFIELD_PROBED(dev, lltx);
	return 0;
}

SEC("raw_tp/sys_enter")
int sign_extended(void *ctx)
{
	struct ipv6_pinfo *np = ctx;
	struct ipv6_pinfo___plain *plain = ctx;
	struct printf_spec *spec = ctx;

	hops = BPF_CORE_READ_BITFIELD_PROBED(np, hop_limit);
	hops += BPF_CORE_READ_BITFIELD_PROBED(np, mcast_hops);
	hops += BPF_CORE_READ_BITFIELD_PROBED(plain, hop_limit);
	if (bpf_core_field_exists(spec->precision)) {
		precision = BPF_CORE_READ_BITFIELD_PROBED(spec, precision);
		out[0] = BPF_CORE_READ_BITFIELD_PROBED(spec, base);
		precision += (s64)BPF_CORE_READ_BITFIELD_PROBED(spec, field_width);
	}
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(direct, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	out[0] = BPF_CORE_READ_BITFIELD(prev, in_execve);
	out[1] = BPF_CORE_READ_BITFIELD(next, sched_reset_on_fork);
	out[2] = BPF_CORE_READ_BITFIELD(next, in_iowait);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
