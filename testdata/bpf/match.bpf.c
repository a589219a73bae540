// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// type_matches, the one kind that compares whole types: members by name, functions by their parameters,
// arrays, enums, unions, and nothing behind a pointer to a struct. Kernels changed some of these signatures.
#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct user_namespace;
struct mnt_idmap;

/* permission(inode, mask) until 5.11, with a user_namespace until 6.2, with a mnt_idmap since. */
struct inode_operations___v1 {
	int (*permission)(struct inode *, int);
};

struct inode_operations___v2 {
	int (*permission)(struct user_namespace *, struct inode *, int);
};

struct inode_operations___v3 {
	int (*permission)(struct mnt_idmap *, struct inode *, int);
};

struct file_operations___subset {
	int (*release)(struct inode *, struct file *);
	int (*open)(struct inode *, struct file *);
};

struct file_operations___wrong {
	void (*open)(struct inode *, struct file *);
};

/* Base types go by name, and GCC says "long long int" for Clang's "long long". */
struct file_operations___clang {
	loff_t (*llseek)(struct file *, loff_t, int);
};

/* Members behind pointers are not compared, embedded ones are. */
struct dentry___shallow {
	struct inode___other *d_inode;
};

struct inode___other {
	int no_such_member;
};

struct path___embedded {
	struct dentry dentry;
};

struct upid___embedded {
	int nr;
	struct pid_namespace *ns;
};

struct pid___array {
	struct upid___embedded numbers[];
};

struct signal_struct___array {
	struct {
	} rlim[16];
};

struct task_struct___ints {
	int pid;
	pid_t tgid;
	unsigned int flags;
};

struct task_struct___clang {
	u64 start_time;
};

struct task_struct___wrong_size {
	u64 pid;
};

/* Nested anonymous types have to be nested alike, other than for a field. */
struct sock_common___match {
	union {
		struct {
			__be32 skc_daddr, skc_rcv_saddr;
		};
	};
};

struct sock_common___no_match {
	__be32 skc_daddr;
};

struct in6_addr___32 {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

union nf_inet_addr {
	__be32 ip;
	struct in6_addr___32 in6;
};

union nf_inet_addr___wrong {
	__be32 ip6[8];
	u64 ip;
};

#pragma clang attribute pop

enum pid_type { PIDTYPE_PID, PIDTYPE_TGID };
enum pid_type___wrong { PIDTYPE_NO_SUCH___wrong };
typedef u32 (*no_such_func_t)(void);
typedef void (*smp_call_func_t)(void *);
typedef int (*smp_call_func_t___wrong)(int);

u32 out[24];

SEC("raw_tp/sys_enter")
int functions(void *ctx)
{
	out[0] = bpf_core_type_matches(struct inode_operations___v1);
	out[1] = bpf_core_type_matches(struct inode_operations___v2);
	out[2] = bpf_core_type_matches(struct inode_operations___v3);
	out[3] = bpf_core_type_matches(struct file_operations___subset);
	out[4] = bpf_core_type_matches(struct file_operations___wrong);
	out[5] = bpf_core_type_matches(struct file_operations___clang);
	out[6] = bpf_core_type_matches(smp_call_func_t);
	out[7] = bpf_core_type_matches(smp_call_func_t___wrong);
	out[8] = bpf_core_type_matches(no_such_func_t);
	return 0;
}

SEC("raw_tp/sys_enter")
int members(void *ctx)
{
	out[0] = bpf_core_type_matches(struct dentry___shallow);
	out[1] = bpf_core_type_matches(struct path___embedded);
	out[2] = bpf_core_type_matches(struct pid___array);
	out[3] = bpf_core_type_matches(struct signal_struct___array);
	out[4] = bpf_core_type_matches(struct task_struct___ints);
	out[5] = bpf_core_type_matches(struct task_struct___clang);
	out[6] = bpf_core_type_matches(struct task_struct___wrong_size);
	out[7] = bpf_core_type_matches(struct sock_common___match);
	out[8] = bpf_core_type_matches(struct sock_common___no_match);
	out[9] = bpf_core_type_matches(union nf_inet_addr);
	out[10] = bpf_core_type_matches(union nf_inet_addr___wrong);
	out[11] = bpf_core_type_matches(enum pid_type);
	out[12] = bpf_core_type_matches(enum pid_type___wrong);
	out[13] = bpf_core_type_matches(atomic_t);
	return 0;
}

/* A match as the guard of an access. */
SEC("raw_tp/sys_enter")
int guarded(void *ctx)
{
	struct inode_operations___v3 *ops = ctx;

	if (bpf_core_type_matches(struct inode_operations___v3))
		out[0] = BPF_CORE_READ(ops, permission) != NULL;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
