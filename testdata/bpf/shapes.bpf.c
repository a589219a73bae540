// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Every shape of path: nested, anonymous, flexible and multi-dimensional members, pointers used as arrays,
// unions, and roots that are typedefs of anonymous structs or carry qualifiers.
#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Nested in the kernel in two anonymous levels, flat here: found by name all the same. */
struct sock_common___flat {
	u16 skc_num;
};

/* Flat in the kernel, nested here. */
struct file___nested {
	union {
		struct {
			struct inode *f_inode;
		};
	};
};

/* BTF of GCC kernels flattens [5][5] to [25] until pahole 1.31, so only one of these two matches. */
struct mem_cgroup_per_node___flat {
	unsigned long lru_zone_size[25];
};

struct mem_cgroup_per_node___2d {
	unsigned long lru_zone_size[5][5];
};

struct signal_struct___long {
	struct rlimit rlim[32];
};

/* A flexible array of structs, whose element is itself an array at its end. */
struct sockaddr_un {
	unsigned short sun_family;
	char sun_path[108];
};

struct unix_address {
	int len;
	struct sockaddr_un name[0];
};

struct pid___one {
	struct upid numbers[1]; /* as older kernels have it */
};

union nf_inet_addr {
	u32 all[4];
	__be32 ip;
	struct in6_addr in6;
};

/* The kernel's member is narrower: the load is made narrower too. */
struct trace_event_raw_inet_sock_set_state___wide {
	u64 sport;
};

/* struct skb_frag_struct until 5.3, struct bio_vec until 6.6, struct skb_frag since. */
typedef struct skb_frag {
	unsigned int len;
} skb_frag_t;

typedef struct {
	unsigned int bv_len;
} skb_frag_t___bio_vec;

struct skb_shared_info {
	u8 nr_frags;
	struct sk_buff *frag_list;
};

#pragma clang attribute pop

typedef const volatile kuid_t cv_kuid_t;

u64 out[32];
const volatile int nth = 2;

static __always_inline struct task_struct *current(void)
{
	return (struct task_struct *)bpf_get_current_task();
}

SEC("raw_tp/sys_enter")
int nested(void *ctx)
{
	struct sock_common___flat *flat = (void *)current();
	struct file___nested *file = (void *)current();

	out[0] = BPF_CORE_READ(current(), nsproxy, uts_ns, name.nodename[3]);
	out[1] = BPF_CORE_READ(flat, skc_num);
	out[2] = (u64)BPF_CORE_READ(file, f_inode);
	out[3] = BPF_CORE_READ((struct dentry *)ctx, d_name.hash_len);
	return 0;
}

SEC("raw_tp/sys_enter")
int arrays(void *ctx)
{
	struct task_struct *t = current();
	struct mem_cgroup_per_node___flat *flat = ctx;
	struct mem_cgroup_per_node___2d *grid = ctx;
	struct rlimit *rl = BPF_CORE_READ(t, signal, rlim);
	struct upid *upids = (void *)t;

	out[0] = BPF_CORE_READ(t, comm[5]);
	out[1] = BPF_CORE_READ(t, signal, rlim[7].rlim_max);
	/* a pointer as an array: the path starts with 3, and with -1 */
	out[2] = BPF_CORE_READ(&rl[3], rlim_cur);
	out[3] = (u64)BPF_CORE_READ(&upids[1], ns);
	out[4] = bpf_core_field_exists(flat->lru_zone_size[7]);
	out[5] = bpf_core_field_exists(grid->lru_zone_size[1][2]);
	if (bpf_core_field_exists(grid->lru_zone_size[1][2]))
		out[6] = BPF_CORE_READ(grid, lru_zone_size[1][2]);
	/* beyond the end of the kernel's array: no match */
	out[7] = bpf_core_field_exists(((struct signal_struct___long *)0)->rlim[16].rlim_cur);
	return 0;
}

SEC("raw_tp/sys_enter")
int flexible(void *ctx)
{
	struct pid *pid = BPF_CORE_READ(current(), thread_pid);
	struct pid___one *one = (void *)pid;
	struct unix_address *addr = ctx;

	out[0] = BPF_CORE_READ(pid, numbers[0].nr);
	out[1] = BPF_CORE_READ(pid, numbers[nth].nr);
	out[2] = bpf_core_field_exists(pid->numbers[2].nr); /* no where the kernel has numbers[1] */
	out[3] = BPF_CORE_READ(one, numbers[0].nr);
	out[4] = BPF_CORE_READ(addr, name[0].sun_path[1]);
	out[5] = BPF_CORE_READ(addr, name[1].sun_family);
	out[6] = bpf_core_field_size(struct pid, numbers);
	return 0;
}

SEC("raw_tp/sys_enter")
int unions(void *ctx)
{
	union nf_inet_addr *a = ctx;
	struct in6_addr *in6 = ctx;

	out[0] = BPF_CORE_READ(a, ip);
	out[1] = BPF_CORE_READ(a, in6.in6_u.u6_addr32[3]);
	out[2] = BPF_CORE_READ(&a[2], all[1]);
	out[3] = BPF_CORE_READ(in6, in6_u.u6_addr8[15]);
	out[4] = bpf_core_type_size(union nf_inet_addr);
	return 0;
}

SEC("raw_tp/sys_enter")
int roots(void *ctx)
{
	const volatile struct task_struct *t = current();
	skb_frag_t *frag = ctx;
	skb_frag_t___bio_vec *bvec = ctx;
	kuid_t *uid = ctx;
	const volatile atomic_t *refs = ctx;

	out[0] = BPF_CORE_READ(t, tgid);
	/* typedefs, which the kernel must know by the same name */
	if (bpf_core_field_exists(frag->len))
		out[1] = BPF_CORE_READ(frag, len);
	else if (bpf_core_field_exists(bvec->bv_len))
		out[1] = BPF_CORE_READ(bvec, bv_len);
	out[2] = BPF_CORE_READ(uid, val);
	out[3] = BPF_CORE_READ(refs, counter);
	out[4] = bpf_core_type_size(atomic_t);
	out[5] = bpf_core_type_exists(cv_kuid_t); /* no: our own name */
	out[6] = bpf_core_type_size(const volatile struct list_head);
	out[7] = bpf_core_type_size(loff_t);
	return 0;
}

SEC("tracepoint/sock/inet_sock_set_state")
int narrowed_load(struct trace_event_raw_inet_sock_set_state___wide *ctx)
{
	out[0] = ctx->sport;
	return 0;
}

/* Container from member, and a member's distance from another. */
SEC("raw_tp/sys_enter")
int offsets(void *ctx)
{
	struct inet_sock *inet = ctx - bpf_core_field_offset(struct inet_sock, inet_sport);
	struct skb_shared_info *si = ctx;

	out[0] = BPF_CORE_READ(inet, sk.__sk_common.skc_family);
	out[1] = bpf_core_field_offset(struct dentry, d_name.name) - bpf_core_field_offset(struct dentry, d_name);
	out[2] = BPF_CORE_READ(si, frag_list, len);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
