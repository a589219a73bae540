// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Names that kernels hold more than once, in ways that a loader resolves: only one candidate has the member,
// or all agree on its place. Each resolved relocation narrows the candidates of its local type for those that
// follow, so the order of these lines matters.
#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* kernel/events/core.c has two or three: {pid, tid}, {offset, size, flags} and, since 5.17, {hw_id}. */
struct perf_event_header {
	u16 size, misc;
	u32 type;
};

struct perf_aux_event {
	struct perf_event_header header;
	u32 pid, tid;
};

struct perf_aux_event___aux {
	u64 offset, size, flags;
};

struct perf_aux_event___hw_id {
	u64 hw_id;
};

/* The same name for the same thing, once native and once for 32-bit tasks, with other types inside. */
typedef struct {
	int si_signo;
} siginfo_t;

struct elf_note_info {
	int thread_notes;
	unsigned long size;
	siginfo_t csigdata;
};

/* fs/readdir.c and fs/exportfs/expfs.c. */
struct getdents_callback {
	int prev_reclen;
	void *current_dir;
};

struct getdents_callback___exportfs {
	int sequence;
	u64 ino;
};

/* Twice in 5.10, with mm at another place: hash makes it one before mm is asked for. */
struct mm_slot {
	struct hlist_node hash;
	struct mm_struct *mm;
};

/* The DMA engine's, and on x86 and powerpc also that of the ISA controller. */
struct dma_chan {
	int chan_id, client_count;
};

#pragma clang attribute pop

u64 out[16];

SEC("raw_tp/sys_enter")
int one_has_it(void *ctx)
{
	struct perf_aux_event *e = ctx;
	struct perf_aux_event___aux *aux = ctx;
	struct perf_aux_event___hw_id *hw = ctx;
	struct getdents_callback *readdir = ctx;
	struct getdents_callback___exportfs *exportfs = ctx;
	struct dma_chan *chan = ctx;

	out[0] = bpf_core_field_exists(e->header.size);
	out[1] = BPF_CORE_READ(e, header.size);
	out[2] = BPF_CORE_READ(e, pid);
	out[3] = BPF_CORE_READ(e, tid);
	out[4] = BPF_CORE_READ(aux, offset) + BPF_CORE_READ(aux, flags);
	if (bpf_core_field_exists(hw->hw_id))
		out[5] = BPF_CORE_READ(hw, hw_id);
	out[6] = (u64)BPF_CORE_READ(readdir, current_dir);
	out[7] = BPF_CORE_READ(exportfs, sequence) + BPF_CORE_READ(exportfs, ino);
	out[8] = bpf_core_type_exists(struct dma_chan);
	out[9] = BPF_CORE_READ(chan, chan_id);
	return 0;
}

SEC("raw_tp/sys_enter")
int all_agree(void *ctx)
{
	struct elf_note_info *info = ctx;

	out[0] = BPF_CORE_READ(info, size);
	out[1] = BPF_CORE_READ(info, csigdata.si_signo);
	out[2] = bpf_core_field_size(struct elf_note_info, size);
	out[3] = bpf_core_type_exists(struct elf_note_info);
	out[4] = bpf_core_type_size(struct elf_note_info);
	return 0;
}

SEC("raw_tp/sys_enter")
int narrowed(void *ctx)
{
	struct mm_slot *slot = ctx;

	if (bpf_core_field_exists(slot->hash)) {
		out[0] = (u64)BPF_CORE_READ(slot, hash.next);
		out[1] = (u64)BPF_CORE_READ(slot, mm);
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
