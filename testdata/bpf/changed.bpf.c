// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Programs that load on every kernel here, but read something else on some: an argument that is another one, or
// a field of a record that moved. TestChanged of internal/check has what is expected of each.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern int LINUX_KERNEL_VERSION __kconfig;

volatile u64 sink;

struct bio {
	unsigned int bi_opf;
} __attribute__((preserve_access_index));

/* block_bio_queue: a request_queue and a bio before Linux 5.11, then only the bio. */
SEC("raw_tp/block_bio_queue") int as_bio(u64 *ctx)
{
	struct bio *bio = (void *)ctx[0];

	sink = BPF_CORE_READ(bio, bi_opf);
	return 0;
}

SEC("raw_tp/block_bio_queue") int as_bio_guarded(u64 *ctx)
{
	struct bio *bio = (void *)ctx[0];

	if (LINUX_KERNEL_VERSION < KERNEL_VERSION(5, 11, 0))
		bio = (void *)((volatile u64 *)ctx)[1];
	sink = BPF_CORE_READ(bio, bi_opf);
	return 0;
}

/* The first argument is read on all, but used only where it is the bio. */
SEC("raw_tp/block_bio_frontmerge") int used_guarded(u64 *ctx)
{
	struct bio *bio = (void *)ctx[0];

	barrier_var(bio);
	if (LINUX_KERNEL_VERSION >= KERNEL_VERSION(5, 11, 0))
		sink = BPF_CORE_READ(bio, bi_opf);
	return 0;
}

typedef void (*btf_trace_block_bio_queue___new)(void *, struct bio *);

SEC("raw_tp/block_bio_queue") int matched(u64 *ctx)
{
	if (bpf_core_type_matches(btf_trace_block_bio_queue___new))
		sink = BPF_CORE_READ((struct bio *)ctx[0], bi_opf);
	return 0;
}

SEC("raw_tp/block_bio_queue") int untyped(u64 *ctx)
{
	sink = ctx[0];
	return 0;
}

SEC("raw_tp/block_bio_queue") int untyped_guarded(u64 *ctx)
{
	if (LINUX_KERNEL_VERSION >= KERNEL_VERSION(5, 11, 0))
		sink = ctx[0];
	return 0;
}

/* kmem_cache_alloc: the third argument was a size, and is a struct kmem_cache since Linux 6.1. */
SEC("tp_btf/kmem_cache_alloc") int number(u64 *ctx)
{
	sink = ctx[2];
	return 0;
}

/* sched_switch has another argument since Linux 5.18, the last. */
SEC("raw_tp/sched_switch") int same(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1];

	sink = ctx[2];
	sink = BPF_CORE_READ(prev, tgid);
	return 0;
}

/* Every struct inet_sock begins with a struct sock. */
SEC("raw_tp/inet_sock_set_state") int as_larger(u64 *ctx)
{
	struct inet_sock *sk = (void *)ctx[0];

	sink = BPF_CORE_READ(sk, inet_sport);
	return 0;
}

/* vfs_mkdir: an argument was inserted before the inode in Linux 5.12. */
SEC("fentry/vfs_mkdir") int inserted(u64 *ctx)
{
	struct inode *dir = (void *)ctx[0];

	sink = BPF_CORE_READ(dir, i_ino);
	return 0;
}

SEC("fentry/vfs_mkdir") int inserted_number(u64 *ctx)
{
	sink = ctx[2];
	return 0;
}

/* mm_page_alloc: the flags became a long in Linux 6.1, and moved. */
struct page_alloc {
	u64 common;
	u64 pfn;
	u32 order;
	u32 gfp_flags;
	int migratetype;
};

SEC("tp/kmem/mm_page_alloc") int moved(struct page_alloc *ctx)
{
	sink = ctx->gfp_flags;
	return 0;
}

SEC("tp/kmem/mm_page_alloc") int stayed(struct page_alloc *ctx)
{
	sink = ctx->order;
	sink = ctx->pfn;
	return 0;
}

SEC("tp/kmem/mm_page_alloc") int moved_guarded(struct page_alloc *ctx)
{
	if (LINUX_KERNEL_VERSION < KERNEL_VERSION(5, 19, 0))
		sink = ctx->gfp_flags;
	return 0;
}

SEC("tp/kmem/mm_page_alloc") int moved_unnamed(u32 *ctx)
{
	sink = ctx[5];
	return 0;
}

/* sched_wakeup: success was before the CPU until Linux 5.14. The record is that of several tracepoints. */
struct trace_event_raw_sched_wakeup_template {
	u64 common;
	char comm[16];
	int pid;
	int prio;
	int success;
	int target_cpu;
};

SEC("tp/sched/sched_wakeup") int of_class(struct trace_event_raw_sched_wakeup_template *ctx)
{
	sink = ctx->success;
	return 0;
}

/* sched_process_fork: a string became the place of one in Linux 6.18. */
struct forked {
	u64 common;
	char parent_comm[16];
};

SEC("tp/sched/sched_process_fork") int became(struct forked *ctx)
{
	char comm[16];

	bpf_probe_read_kernel_str(comm, sizeof(comm), ctx->parent_comm);
	sink = comm[0];
	return 0;
}
