// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Every common form of a guard before an access that some kernels cannot resolve: each program here loads
// everywhere, poisoned or not, because the verifier sees that the poisoned instruction cannot run.
// expect.json says what each is on which kernel.
#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mnt_idmap;

struct kernfs_node___parent {
	struct kernfs_node___parent *parent;
};

struct bio___bdev {
	struct block_device *bi_bdev;
};

struct bio___disk {
	struct gendisk *bi_disk;
};

struct mm_rss_stat {
	struct {
		s64 counter;
	} count[4];
};

struct mm_struct___rss {
	struct mm_rss_stat rss_stat;
};

struct inode___sec {
	time64_t i_ctime_sec;
};

struct timespec64 {
	time64_t tv_sec;
};

struct inode___spec {
	struct timespec64 i_ctime;
};

struct trace_event_raw_kfree_skb {
	struct trace_entry ent;
	void *skbaddr, *location;
	void *rx_sk;
};

struct inode_operations___idmap {
	int (*permission)(struct mnt_idmap *, struct inode *, int);
};

struct inode_operations___plain {
	int (*permission)(struct inode *, int);
};

struct nowhere {
	u64 field;
};

#pragma clang attribute pop

enum bpf_func_id {
	BPF_FUNC_get_current_task_btf = 158,
	BPF_FUNC_no_such_helper = 9999,
};

enum rpm_status { RPM_ACTIVE, RPM_BLOCKED = 4 };

static u64 (*bpf_no_such_helper)(void) = (void *)9999;

extern int LINUX_KERNEL_VERSION __kconfig;
extern bool CONFIG_NO_SUCH_OPTION __kconfig __weak;

const volatile bool trace_nowhere = false;
const volatile u32 wanted_depth = 3;
u64 out[8];

static __always_inline struct task_struct *current(void)
{
	return (struct task_struct *)bpf_get_current_task();
}

#define GUARD(name) SEC("raw_tp/sys_enter") int name(void *ctx)

GUARD(if_else)
{
	struct task_struct *t = current();
	struct task_struct___old *old = (void *)t;

	if (bpf_core_field_exists(t->__state))
		out[0] = BPF_CORE_READ(t, __state);
	else
		out[0] = BPF_CORE_READ(old, state);
	return 0;
}

GUARD(ternary)
{
	struct bio___bdev *bdev = ctx;
	struct bio___disk *disk = ctx;

	out[0] = bpf_core_field_exists(bdev->bi_bdev) ? (u64)BPF_CORE_READ(bdev, bi_bdev)
						      : (u64)BPF_CORE_READ(disk, bi_disk);
	return 0;
}

GUARD(early_return)
{
	struct kernfs_node *kn = ctx;

	if (!bpf_core_field_exists(kn->__parent))
		return 0;
	out[0] = (u64)BPF_CORE_READ(kn, __parent);
	return 0;
}

GUARD(goto_out)
{
	struct kernfs_node___parent *kn = ctx;
	int ret = 1;

	if (!kn)
		goto out;
	if (!bpf_core_field_exists(kn->parent))
		goto out;
	out[0] = (u64)BPF_CORE_READ(kn, parent);
	ret = 0;
out:
	return ret;
}

GUARD(nested)
{
	struct mm_struct *mm = BPF_CORE_READ(current(), mm);
	struct mm_struct___rss *rss = (void *)mm;

	if (bpf_core_type_exists(struct mm_rss_stat)) {
		if (mm) {
			if (bpf_core_field_exists(rss->rss_stat.count[1].counter))
				out[0] = BPF_CORE_READ(rss, rss_stat.count[1].counter);
		}
	}
	return 0;
}

GUARD(and_chain)
{
	struct inode___sec *inode = ctx;
	u64 flags = bpf_get_current_pid_tgid();

	if (inode && bpf_core_field_exists(inode->i_ctime_sec) && flags & 1)
		out[0] = BPF_CORE_READ(inode, i_ctime_sec);
	return 0;
}

/* Either of two, and only then the one that is there. */
GUARD(or_then_which)
{
	struct inode___sec *sec = ctx;
	struct inode___spec *spec = ctx;

	if (!bpf_core_field_exists(sec->i_ctime_sec) && !bpf_core_field_exists(spec->i_ctime))
		return 0;
	if (bpf_core_field_exists(sec->i_ctime_sec))
		out[0] = BPF_CORE_READ(sec, i_ctime_sec);
	else
		out[0] = BPF_CORE_READ(spec, i_ctime.tv_sec);
	return 0;
}

static __noinline bool has_parent(void)
{
	return bpf_core_field_exists(((struct kernfs_node___parent *)0)->parent);
}

GUARD(guard_in_subprog)
{
	struct kernfs_node___parent *kn = ctx;

	if (has_parent())
		out[0] = (u64)BPF_CORE_READ(kn, parent);
	return 0;
}

static __noinline u64 read_bdev(struct bio___bdev *bio)
{
	return (u64)BPF_CORE_READ(bio, bi_bdev);
}

GUARD(access_in_subprog)
{
	struct bio___bdev *bio = ctx;

	if (bpf_core_field_exists(bio->bi_bdev))
		out[0] = read_bdev(bio);
	return 0;
}

__noinline int guarded_global(u64 unused)
{
	struct task_struct___old *old = (void *)current();

	if (!bpf_core_field_exists(old->state))
		return (int)unused;
	return BPF_CORE_READ(old, state);
}

GUARD(guard_in_global_subprog)
{
	out[0] = guarded_global(0);
	return 0;
}

GUARD(loop)
{
	struct kernfs_node *new = ctx;
	struct kernfs_node___parent *old = ctx;
	u32 depth = 0;

#pragma clang loop unroll(disable)
	for (u32 i = 0; i < 8; i++) {
		if (bpf_core_field_exists(new->__parent)) {
			new = BPF_CORE_READ(new, __parent);
			if (!new)
				break;
		} else {
			old = BPF_CORE_READ(old, parent);
			if (!old)
				break;
		}
		depth++;
	}
	out[0] = depth;
	return 0;
}

static __noinline void *parent_of(struct kernfs_node___parent *kn)
{
	return BPF_CORE_READ(kn, parent);
}

/* The subprogram keeps the access in its place: see hoisted in broken.bpf.c. */
GUARD(loop_break)
{
	struct kernfs_node___parent *kn = ctx;
	u32 i;

#pragma clang loop unroll(disable)
	for (i = 0; i < wanted_depth && i < 16; i++) {
		if (!bpf_core_field_exists(kn->parent))
			break;
		kn = parent_of(kn);
		if (!kn)
			break;
	}
	out[0] = i;
	return 0;
}

/* The answer kept in a variable, over a call, and hidden from the compiler. */
GUARD(saved)
{
	struct task_struct___old *old = (void *)current();
	bool has = bpf_core_field_exists(old->state);
	u64 now;

	hide(has);
	now = bpf_ktime_get_ns();
	if (has)
		out[0] = BPF_CORE_READ(old, state);
	out[1] = now;
	return 0;
}

/* Two answers in the bits of one variable. */
GUARD(bit_mask)
{
	struct inode___sec *sec = ctx;
	struct bio___disk *disk = ctx;
	u32 has = 0;

	has |= bpf_core_field_exists(sec->i_ctime_sec) << 0;
	has |= bpf_core_field_exists(disk->bi_disk) << 1;
	hide(has);
	if (has & 1)
		out[0] = BPF_CORE_READ(sec, i_ctime_sec);
	if (has & 2)
		out[1] = (u64)BPF_CORE_READ(disk, bi_disk);
	return 0;
}

GUARD(type_exists)
{
	struct nowhere *n = ctx;

	if (bpf_core_type_exists(struct nowhere))
		out[0] = BPF_CORE_READ(n, field);
	return 0;
}

/* A size of 0 says that there is no such type. */
GUARD(type_size)
{
	struct nowhere *n = ctx;

	if (bpf_core_type_size(struct nowhere) >= 8)
		out[0] = BPF_CORE_READ(n, field);
	return 0;
}

GUARD(type_matches)
{
	struct inode_operations___idmap *idmap = ctx;
	struct nowhere *n = ctx;

	if (bpf_core_type_matches(struct inode_operations___idmap))
		out[0] = (u64)BPF_CORE_READ(idmap, permission);
	if (!bpf_core_type_matches(struct inode_operations___idmap) &&
	    !bpf_core_type_matches(struct inode_operations___plain) && bpf_core_type_matches(struct nowhere))
		out[1] = BPF_CORE_READ(n, field);
	return 0;
}

GUARD(enum_value)
{
	if (bpf_core_enum_value_exists(enum rpm_status, RPM_BLOCKED))
		out[0] = bpf_core_enum_value(enum rpm_status, RPM_BLOCKED);
	return 0;
}

/* The kernel's list of helpers says which there are. */
GUARD(helper_by_enum)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf))
		out[0] = BPF_CORE_READ(bpf_get_current_task_btf(), pid);
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_no_such_helper))
		out[1] = bpf_no_such_helper();
	return 0;
}

GUARD(kernel_version)
{
	struct task_struct *t = current();
	struct task_struct___old *old = (void *)t;

	if (LINUX_KERNEL_VERSION >= KERNEL_VERSION(5, 14, 0))
		out[0] = BPF_CORE_READ(t, __state);
	else
		out[0] = BPF_CORE_READ(old, state);
	return 0;
}

GUARD(kconfig)
{
	struct nowhere *n = ctx;

	if (CONFIG_NO_SUCH_OPTION)
		out[0] = BPF_CORE_READ(n, field);
	return 0;
}

/* Off unless the loader sets it before loading. */
GUARD(rodata)
{
	struct nowhere *n = ctx;

	if (trace_nowhere)
		out[0] = BPF_CORE_READ(n, field);
	return 0;
}

/* A relocation in the load itself, from the context. */
SEC("tracepoint/skb/kfree_skb")
int direct_load(struct trace_event_raw_kfree_skb *ctx)
{
	if (bpf_core_field_exists(ctx->rx_sk))
		out[0] = (u64)ctx->rx_sk;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
