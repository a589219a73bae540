// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A tracer of files: lsm, fentry and fexit programs and two iterators. The name of a dentry is a plain member
// in 6.12 and in an anonymous union in 6.18; the root of lsm/bpf's argument is a union; rss_stat changed its type in 6.2.
#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

union bpf_attr {
	struct {
		u32 map_type, key_size, value_size, max_entries;
	};
	struct {
		u32 prog_type, insn_cnt;
	};
};

struct percpu_counter {
	s64 count;
};

struct mm_struct___percpu {
	struct percpu_counter rss_stat[4];
};

struct mm_rss_stat {
	struct {
		s64 counter;
	} count[4];
};

struct mm_struct___atomic {
	struct mm_rss_stat rss_stat;
};

#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u64);
} opened SEC(".maps");

u64 maps_created, writes_failed;

SEC("lsm/bpf")
int BPF_PROG(lsm_bpf, int cmd, union bpf_attr *attr, unsigned int size)
{
	if (cmd == 0 && attr->map_type == BPF_MAP_TYPE_RINGBUF && attr->max_entries)
		__sync_fetch_and_add(&maps_created, 1);
	return 0;
}

SEC("fentry/vfs_open")
int BPF_PROG(vfs_open, const struct path *path, struct file *file)
{
	struct inode *inode = path->dentry->d_inode;
	u64 ino = inode->i_ino, dev = inode->i_sb->s_dev;

	if ((inode->i_mode & 0170000) == 0100000 && path->dentry->d_name.len < 64)
		bpf_map_update_elem(&opened, &ino, &dev, BPF_ANY);
	return 0;
}

SEC("fexit/vfs_write")
int BPF_PROG(vfs_write, struct file *file, const char *buf, unsigned long count, loff_t *pos, long ret)
{
	u64 ino = BPF_CORE_READ(file, f_inode, i_ino);

	if (ret < 0)
		__sync_fetch_and_add(&writes_failed, 1);
	else
		bpf_map_delete_elem(&opened, &ino);
	return 0;
}

SEC("iter/task")
int dump_rss(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct mm_struct *mm;
	s64 file, anon;

	if (!task)
		return 0;
	mm = task->mm;
	if (bpf_core_type_exists(struct mm_rss_stat)) {
		struct mm_struct___atomic *old = (void *)mm;

		file = BPF_CORE_READ(old, rss_stat.count[0].counter);
		anon = BPF_CORE_READ(old, rss_stat.count[1].counter);
	} else {
		struct mm_struct___percpu *new = (void *)mm;

		file = BPF_CORE_READ(new, rss_stat[0].count);
		anon = BPF_CORE_READ(new, rss_stat[1].count);
	}
	if (ctx->meta->seq_num == 0)
		BPF_SEQ_PRINTF(ctx->meta->seq, "pid file anon\n");
	BPF_SEQ_PRINTF(ctx->meta->seq, "%d %lld %lld\n", task->tgid, file, anon);
	return 0;
}

SEC("iter/task_file")
int dump_files(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	char name[32];

	if (!task || !file)
		return 0;
	bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(file, f_path.dentry, d_name.name));
	BPF_SEQ_PRINTF(ctx->meta->seq, "%d %d %s %lld\n", task->tgid, ctx->fd, name, file->f_pos);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
