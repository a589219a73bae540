/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The kernel's types as far as the programs in this directory need them, written by hand. Only names and
 * nesting matter: the loader finds the real offsets. Members are few and mostly in another order than any
 * kernel's, so that a relocation that is not applied gives a wrong number rather than a right one by luck.
 */
#ifndef KERNEL_H
#define KERNEL_H

/* Makes bpf_tracing.h use the kernel's names of registers rather than those of user space. */
#define __VMLINUX_H__

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

typedef __u8 u8;
typedef __u16 u16;
typedef __s16 s16;
typedef __u32 u32;
typedef __s32 s32;
typedef __s64 s64;
typedef __u64 u64;
typedef _Bool bool;
typedef int pid_t;
typedef unsigned int uid_t;
typedef unsigned int dev_t;
typedef long long loff_t;
typedef unsigned short umode_t;
typedef u64 sector_t;
typedef s64 time64_t;

enum { false, true };

#define NULL ((void *)0)
#define TASK_COMM_LEN 16
#define PF_KTHREAD 0x00200000
#define AF_INET 2
#define TCP_ESTABLISHED 1
#define TCP_CLOSE 7
#define ETH_P_IP 0x0800
#define BPF_ANY 0
#define BPF_F_CURRENT_CPU 0xffffffffULL

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum xdp_action { XDP_ABORTED, XDP_DROP, XDP_PASS };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Contexts of programs. */

struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

typedef struct {
	unsigned long gprs[16];
} user_pt_regs;

#ifdef __TARGET_ARCH_s390
typedef user_pt_regs bpf_user_pt_regs_t;
#else
typedef struct pt_regs bpf_user_pt_regs_t;
#endif

struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
	u64 sample_period;
	u64 addr;
};

struct xdp_md {
	u32 data, data_end, data_meta, ingress_ifindex, rx_queue_index;
};

struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol;
	u32 cb[5];
	u32 hash, tc_classid, data, data_end;
	u64 tstamp;
};

struct bpf_sock_addr {
	u32 user_family, user_ip4;
	u32 user_ip6[4];
	u32 user_port, family, type, protocol;
};

struct bpf_sock_ops {
	u32 op;
	u32 family, remote_ip4, local_ip4;
	u32 remote_port, local_port;
};

struct trace_entry {
	unsigned short type;
	unsigned char flags;
	int pid;
};

struct trace_event_raw_sys_enter {
	struct trace_entry ent;
	long id;
	unsigned long args[6];
	char __data[0];
};

struct trace_event_raw_sched_process_exec {
	struct trace_entry ent;
	u32 __data_loc_filename;
	pid_t pid, old_pid;
	char __data[0];
};

struct trace_event_raw_inet_sock_set_state {
	struct trace_entry ent;
	const void *skaddr;
	int oldstate, newstate;
	u16 sport, dport, family, protocol;
	u8 saddr[4], daddr[4];
};

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id, seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

/* Tasks. */

struct list_head {
	struct list_head *next, *prev;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct rlimit {
	unsigned long rlim_cur, rlim_max;
};

struct signal_struct {
	int nr_threads;
	unsigned int is_child_subreaper : 1;
	struct rlimit rlim[16];
};

typedef struct {
	uid_t val;
} kuid_t;

struct cred {
	kuid_t uid, euid;
};

typedef struct {
	int counter;
} atomic_t;

struct ns_common {
	unsigned int inum;
};

struct new_utsname {
	char sysname[65], nodename[65];
};

struct uts_namespace {
	struct new_utsname name;
	struct ns_common ns;
};

struct mnt_namespace {
	struct ns_common ns;
};

struct pid_namespace {
	unsigned int level;
	struct ns_common ns;
};

struct nsproxy {
	struct uts_namespace *uts_ns;
	struct mnt_namespace *mnt_ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

/* numbers[1] in older kernels, numbers[] in newer ones. */
struct pid {
	unsigned int level;
	struct upid numbers[];
};

struct mm_struct {
	unsigned long arg_start, arg_end, start_stack;
	struct file *exe_file;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct task_struct {
	struct mm_struct *mm;
	unsigned int flags;
	int prio, exit_code;
	unsigned int sched_reset_on_fork : 1;
	unsigned int in_execve : 1;
	unsigned int in_iowait : 1;
	pid_t pid, tgid;
	struct task_struct *real_parent, *group_leader;
	u64 start_time;
	const struct cred *cred;
	char comm[TASK_COMM_LEN];
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	struct pid *thread_pid;
	struct css_set *cgroups;
	unsigned int __state; /* long state until 5.13: see task_struct___old */
};

struct task_struct___old {
	long state;
};

struct rq {
	unsigned int nr_running;
	struct task_struct *curr;
};

/* Cgroups and kernfs. */

struct kernfs_node {
	const char *name;
	u64 id;
	struct kernfs_node *__parent;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *ancestors[];
};

/* Files. */

struct qstr {
	union {
		struct {
			u32 hash, len;
		};
		u64 hash_len;
	};
	const unsigned char *name;
};

struct super_block {
	dev_t s_dev;
	unsigned long s_magic;
	char s_id[32];
};

struct inode {
	umode_t i_mode;
	kuid_t i_uid;
	unsigned long i_ino;
	loff_t i_size;
	struct super_block *i_sb;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	unsigned int f_flags;
	struct inode *f_inode;
	struct path f_path;
	loff_t f_pos;
};

struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len, bv_offset;
};

/* Block layer. */

struct gendisk {
	int major, first_minor;
	char disk_name[32];
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags, __data_len;
	sector_t __sector;
};

/* Network. */

struct in6_addr {
	union {
		u8 u6_addr8[16];
		__be16 u6_addr16[8];
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	union {
		struct {
			__be32 skc_daddr, skc_rcv_saddr;
		};
	};
	union {
		struct {
			__be16 skc_dport;
			u16 skc_num;
		};
	};
	unsigned short skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
};

struct inet_sock {
	struct sock sk;
	struct ipv6_pinfo *pinet6;
	__be16 inet_sport;
};

struct tcp_sock {
	u64 bytes_received, bytes_acked;
	u32 srtt_us;
};

struct net_device {
	char name[16];
	int ifindex;
};

struct sk_buff {
	unsigned int len, data_len;
	struct net_device *dev;
	unsigned char *head;
	u8 cloned : 1;
	u8 pkt_type : 3;
	u8 ip_summed : 2;
	__be16 protocol;
};

#pragma clang attribute pop

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_endian.h>

/* Keeps the compiler from knowing a value, so that what it guards stays in the object. */
#define hide(x) asm volatile("" : "+r"(x))

#endif /* KERNEL_H */
