// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Several local flavors of one type, for what moved or changed its type between kernels; odd names with
// underscores; and a flavor on the kernel's side: struct nf_conn___init holds a struct nf_conn.
#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* i_ctime became __i_ctime in 6.6 and i_ctime_sec in 6.11. */
struct timespec64 {
	time64_t tv_sec;
	long tv_nsec;
};

struct inode___v1 {
	struct timespec64 i_ctime;
};

struct inode___v2 {
	struct timespec64 __i_ctime;
};

struct inode___v3 {
	time64_t i_ctime_sec;
};

/* parent became __parent in 6.15; id was a union in 4.19. */
struct kernfs_node___parent {
	struct kernfs_node___parent *parent;
};

union kernfs_node_id {
	struct {
		u32 ino, generation;
	};
	u64 id;
};

struct kernfs_node___id {
	union kernfs_node_id id;
};

/* bi_disk became bi_bdev->bd_disk in 5.12. */
struct block_device {
	struct gendisk *bd_disk;
};

struct bio___bdev {
	struct block_device *bi_bdev;
};

struct bio___disk {
	struct gendisk *bi_disk;
};

/* Only the last three underscores make a flavor, and only three. */
struct task_struct___old___v2 {
	int pid;
};

struct task_struct____v3 {
	int pid;
};

struct task_struct___ {
	int pid;
};

struct ___task_struct {
	int pid;
};

/* The kernel has struct nf_conn and struct nf_conn___init { struct nf_conn ct; }: two candidates. */
struct nf_conn {
	u32 timeout, mark;
};

struct nf_conn___init {
	struct nf_conn ct;
};

#pragma clang attribute pop

u64 out[16];

SEC("raw_tp/sys_enter")
int moved(void *ctx)
{
	struct inode___v1 *v1 = ctx;
	struct inode___v2 *v2 = ctx;
	struct inode___v3 *v3 = ctx;
	struct bio___bdev *bdev = ctx;
	struct bio___disk *disk = ctx;

	if (bpf_core_field_exists(v3->i_ctime_sec))
		out[0] = BPF_CORE_READ(v3, i_ctime_sec);
	else if (bpf_core_field_exists(v2->__i_ctime))
		out[0] = BPF_CORE_READ(v2, __i_ctime.tv_sec);
	else
		out[0] = BPF_CORE_READ(v1, i_ctime.tv_sec);
	out[1] = bpf_core_field_exists(bdev->bi_bdev) ? BPF_CORE_READ(bdev, bi_bdev, bd_disk, major)
						      : BPF_CORE_READ(disk, bi_disk, major);
	return 0;
}

SEC("raw_tp/sys_enter")
int cgroup_name(void *ctx)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task();
	struct kernfs_node *kn = BPF_CORE_READ(t, cgroups, dfl_cgrp, kn);
	struct kernfs_node___parent *parent = (void *)kn;
	struct kernfs_node___id *id = (void *)kn;

	if (bpf_core_field_exists(kn->__parent))
		out[0] = (u64)BPF_CORE_READ(kn, __parent, __parent);
	else
		out[0] = (u64)BPF_CORE_READ(parent, parent, parent);
	if (bpf_core_type_exists(union kernfs_node_id))
		out[1] = BPF_CORE_READ(id, id.ino);
	else
		out[1] = BPF_CORE_READ(kn, id);
	return 0;
}

SEC("raw_tp/sys_enter")
int same_type_twice(void *ctx)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task();
	struct task_struct___old *old = (void *)t;

	out[0] = bpf_core_field_exists(t->__state) ? BPF_CORE_READ(t, __state) : BPF_CORE_READ(old, state);
	out[1] = bpf_core_type_size(struct task_struct) - bpf_core_type_size(struct task_struct___old);
	out[2] = bpf_core_type_id_kernel(struct task_struct___old);
	return 0;
}

SEC("raw_tp/sys_enter")
int odd_names(void *ctx)
{
	out[0] = bpf_core_type_exists(struct task_struct___old___v2);
	out[1] = bpf_core_type_exists(struct task_struct____v3);
	out[2] = bpf_core_type_exists(struct task_struct___);
	out[3] = bpf_core_type_exists(struct ___task_struct);
	return 0;
}

SEC("raw_tp/sys_enter")
int target_flavor(void *ctx)
{
	struct nf_conn *ct = ctx;
	struct nf_conn___init *init = ctx;

	out[0] = BPF_CORE_READ(ct, mark);
	out[1] = bpf_core_type_exists(struct nf_conn___init);
	out[2] = bpf_core_type_size(struct nf_conn___init);
	if (bpf_core_field_exists(init->ct.timeout))
		out[3] = BPF_CORE_READ(init, ct.timeout);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
