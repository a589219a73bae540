// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Names that kernels hold more than once, in ways that a loader refuses: candidates that match and disagree.
// Even asking whether a member exists is ambiguous, where two have it at different places.
// Which program fails on which kernel differs; most ask in a local type of their own, lest one narrows another.
#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Once native and once for 32-bit tasks, on every 64-bit kernel that has those. */
struct memelfnote {
	int type;
};

struct elf_thread_core_info {
	int task;
	struct memelfnote notes[0];
};

/* No match at all, since its elements are of another kind. */
struct elf_thread_core_info___chars {
	char notes[0];
};

struct elf_thread_core_info___size {
	int task;
};

/* In 4.19 and 5.10, those of KSM and of khugepaged. dups.bpf.c asks for another member first. */
struct mm_slot___first {
	struct mm_struct *mm;
	struct hlist_node hash;
};

/* Of the same size, but with two IDs: see flavors.bpf.c. */
struct nf_conn___id {
	u32 mark;
};

/* TCP authentication for IPv4 and for IPv6, in newer kernels built with it. */
struct kdf_input_block {
	u8 counter;
	__be16 outlen;
};

/* 40 bytes each until 6.12, 40 and 48 in 6.18. */
struct getdents_callback___size {
	int sequence;
};

#pragma clang attribute pop

u64 out;

#define PROG(name, value)       \
	SEC("raw_tp/sys_enter") \
	int name(void *ctx)     \
	{                       \
		out = (value);  \
		return 0;       \
	}

PROG(offset, bpf_core_field_offset(struct elf_thread_core_info, notes))
PROG(exists, bpf_core_field_exists(struct elf_thread_core_info, notes))
PROG(no_match, bpf_core_field_exists(struct elf_thread_core_info___chars, notes))
PROG(size, bpf_core_type_size(struct elf_thread_core_info___size))
PROG(before_narrowing, (u64)BPF_CORE_READ((struct mm_slot___first *)ctx, mm))
PROG(narrowing, (u64)BPF_CORE_READ((struct mm_slot___first *)ctx, hash.next))
PROG(type_id, bpf_core_type_id_kernel(struct nf_conn___id))
PROG(newer_kernels, bpf_core_field_offset(struct kdf_input_block, outlen))
PROG(callback_size, bpf_core_type_size(struct getdents_callback___size))

char LICENSE[] SEC("license") = "Dual BSD/GPL";
