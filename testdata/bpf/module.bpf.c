// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Types that live in modules: those of xfs, ext4, btrfs and nf_conntrack, each in a program of its own, since
// not all are loaded everywhere. Some members point back to types of vmlinux; and nf_conn, which modules of some
// kernels have as well, must come from vmlinux.
#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct xfs_mount {
	char *m_logname;
	struct super_block *m_super;
};

struct xfs_inode {
	struct inode i_vnode;
	struct xfs_mount *i_mount;
	u64 i_ino;
};

struct ext4_inode_info {
	u32 i_dtime;
	struct inode vfs_inode;
};

struct ext4_sb_info {
	struct super_block *s_sb;
	unsigned int s_mount_opt;
};

struct btrfs_inode {
	u64 generation;
	struct inode vfs_inode;
};

struct nf_conntrack_l4proto {
	u8 l4proto;
	bool allow_clash;
};

struct nf_conn {
	u32 mark;
};

struct nft_ctx {
	u32 portid;
};

#pragma clang attribute pop

u64 out[16];

/* The filesystem's inode around the VFS's. */
#define container(ptr, type, member) ((type *)((void *)(ptr)-bpf_core_field_offset(type, member)))

SEC("kprobe/xfs_file_write_iter")
int BPF_KPROBE(xfs_write, struct file *unused, struct file *file)
{
	struct xfs_inode *ip = container(BPF_CORE_READ(file, f_inode), struct xfs_inode, i_vnode);

	out[0] = BPF_CORE_READ(ip, i_ino);
	out[1] = BPF_CORE_READ(ip, i_mount, m_super, s_dev);
	out[2] = BPF_CORE_READ(ip, i_vnode.i_size);
	return 0;
}

SEC("kprobe/ext4_file_write_iter")
int BPF_KPROBE(ext4_write, struct file *unused, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct ext4_sb_info *sbi = (void *)BPF_CORE_READ(inode, i_sb);

	out[3] = BPF_CORE_READ(container(inode, struct ext4_inode_info, vfs_inode), i_dtime);
	out[4] = BPF_CORE_READ(sbi, s_mount_opt) + bpf_core_type_size(struct ext4_sb_info);
	return 0;
}

SEC("kprobe/btrfs_file_write_iter")
int BPF_KPROBE(btrfs_write, struct file *unused, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	out[5] = BPF_CORE_READ(container(inode, struct btrfs_inode, vfs_inode), generation);
	return 0;
}

SEC("kprobe/nf_conntrack_in")
int BPF_KPROBE(conntrack_in, void *ct, struct nf_conntrack_l4proto *proto)
{
	out[6] = BPF_CORE_READ(proto, l4proto) + BPF_CORE_READ(proto, allow_clash);
	out[7] = BPF_CORE_READ((struct nf_conn *)ct, mark);
	return 0;
}

/* Works with and without the module. */
SEC("kprobe/nft_trans_commit")
int BPF_KPROBE(nft_commit, struct nft_ctx *nft)
{
	if (bpf_core_type_exists(struct nft_ctx))
		out[8] = BPF_CORE_READ(nft, portid);
	out[9] = bpf_core_type_size(struct nft_ctx);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
