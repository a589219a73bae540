// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Latency of block requests: tp_btf programs whose arguments changed in 5.11 (the queue went), and the disk,
// which moved from the request to its queue in 5.15 to 5.17. Loads of relocated members straight from memory.
#include "kernel.h"

#define SLOTS 26

struct request___rq_disk {
	struct gendisk *rq_disk;
} __attribute__((preserve_access_index));

struct key {
	u32 dev, flags;
};

struct hist {
	u32 slots[SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct request *);
	__type(value, u64);
} issued SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct key);
	__type(value, struct hist);
} hists SEC(".maps");

static struct hist zero;

extern int LINUX_KERNEL_VERSION __kconfig;

static __always_inline struct gendisk *disk_of(struct request *rq)
{
	struct request___rq_disk *old = (void *)rq;

	if (bpf_core_field_exists(rq->q->disk))
		return BPF_CORE_READ(rq, q, disk);
	return BPF_CORE_READ(old, rq_disk);
}

static __always_inline u32 log2_slot(u64 v)
{
	u32 slot = 0;

	for (int i = 0; i < SLOTS - 1 && v > 1; i++, v >>= 1)
		slot++;
	return slot;
}

SEC("tp_btf/block_rq_issue")
int block_rq_issue(u64 *ctx)
{
	struct request *rq = (void *)(LINUX_KERNEL_VERSION < KERNEL_VERSION(5, 11, 0) ? ctx[1] : ctx[0]);
	u64 now = bpf_ktime_get_ns();

	bpf_map_update_elem(&issued, &rq, &now, BPF_ANY);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(block_rq_complete, struct request *rq, int error, unsigned int nr_bytes)
{
	u64 *start = bpf_map_lookup_elem(&issued, &rq);
	struct gendisk *disk;
	struct key key = {};
	struct hist *hist;

	if (!start)
		return 0;
	disk = disk_of(rq);
	key.dev = disk ? BPF_CORE_READ(disk, major) << 20 | BPF_CORE_READ(disk, first_minor) : 0;
	key.flags = rq->cmd_flags & 0xff;
	bpf_map_update_elem(&hists, &key, &zero, BPF_ANY);
	hist = bpf_map_lookup_elem(&hists, &key);
	if (hist)
		hist->slots[log2_slot((bpf_ktime_get_ns() - *start) / 1000)]++;
	bpf_map_delete_elem(&issued, &rq);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
