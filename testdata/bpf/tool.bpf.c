// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A tool that does not need all of its programs, as a loader knows: of some it takes one, others do something extra.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, u64);
} seen SEC(".maps");

// Bloom filters came with Linux 5.16.
struct {
	__uint(type, 30 /* BPF_MAP_TYPE_BLOOM_FILTER */);
	__uint(max_entries, 64);
	__type(value, u32);
} filter SEC(".maps");

static __always_inline int count(void)
{
	struct task_struct *t = (void *)bpf_get_current_task();
	u32 pid = BPF_CORE_READ(t, pid);
	u64 one = 1;

	return bpf_map_update_elem(&seen, &pid, &one, 0);
}

// Every kernel runs one of these.
SEC("raw_tp/sched_switch") int on_switch(void *ctx)
{
	return count();
}

static long nothing(u32 index, void *ctx)
{
	return 1;
}

SEC("tp_btf/sched_switch") int on_switch_btf(void *ctx)
{
	bpf_loop(1, nothing, NULL, 0); // Linux 5.17
	return count();
}

// The same name, attached in two ways.
SEC("fentry/vfs_open") int open_fentry(void *ctx)
{
	count();
	return 0;
}

SEC("kprobe/vfs_open") int open_kprobe(void *ctx)
{
	return count();
}

// Only loaded if the loader asks for it.
SEC("?socket") int extra(void *ctx)
{
	u32 key = 0;

	return bpf_map_peek_elem(&filter, &key);
}

SEC("?fentry/x86_pmu_enable_event") int x86_only(void *ctx)
{
	count();
	return 0;
}
