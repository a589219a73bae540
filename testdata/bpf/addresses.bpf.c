// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Addresses that verifiers take or refuse for where they were kept, or for what was added to them: pointers of
// the kernel on the stack, where helpers were given that memory, and contexts that are not where they were.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern int LINUX_KERNEL_VERSION __kconfig;

volatile u64 sink;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, u64);
} by_task SEC(".maps");

struct {
	__uint(type, 4); /* BPF_MAP_TYPE_PERF_EVENT_ARRAY */
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} events SEC(".maps");

/* The key is where the pointer is, which is read from there again. */
SEC("tp_btf/sched_switch") int as_key(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[2];

	if (bpf_map_lookup_elem(&by_task, &t))
		sink = t->pid;
	return 0;
}

SEC("tp_btf/sched_switch") int as_value(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[2];
	u64 key = 1;

	bpf_map_update_elem(&by_task, &key, &t, BPF_ANY);
	sink = t->pid;
	return 0;
}

/* What is sent has the pointer in it. */
SEC("tp_btf/sched_switch") int in_event(u64 *ctx)
{
	struct {
		u64 time;
		struct task_struct *t;
	} event = {bpf_ktime_get_ns(), (void *)ctx[2]};

	bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &event, sizeof(event));
	sink = event.t->pid;
	return 0;
}

/* Another copy of the pointer, which no helper was given. */
SEC("tp_btf/sched_switch") int copied(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[2], *key = t;

	barrier_var(key);
	if (bpf_map_lookup_elem(&by_task, &key))
		sink = t->pid;
	return 0;
}

/* Next to what the helper was given. */
SEC("tp_btf/sched_switch") int beside(u64 *ctx)
{
	struct {
		u64 key;
		struct task_struct *t;
	} both = {1, (void *)ctx[2]};

	bpf_map_lookup_elem(&by_task, &both);
	sink = both.t->pid;
	return 0;
}

SEC("tp_btf/sched_switch") int as_key_guarded(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[2];

	if (bpf_map_lookup_elem(&by_task, &t) && LINUX_KERNEL_VERSION >= KERNEL_VERSION(6, 14, 0))
		sink = t->pid;
	return 0;
}

/* A number, which may be read from there again. */
SEC("tp_btf/sched_switch") int read_by_helper(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[2];
	int pid = 0;

	if (bpf_map_lookup_elem(&by_task, &t))
		bpf_core_read(&pid, sizeof(pid), &t->pid);
	sink = pid;
	return 0;
}

/* Reads the context at an offset that is added to its address, out of the compiler's sight. */
static __always_inline u64 at(u64 *ctx, u64 off)
{
	u64 v;

	asm volatile("%[c] += %[off]; %[v] = *(u64 *)(%[c] + 0)" : [c] "+r"(ctx), [v] "=r"(v) : [off] "r"(off));
	return v;
}

SEC("tp_btf/sched_switch") int moved(u64 *ctx)
{
	u64 v;

	asm volatile("%[c] += 8; %[v] = *(u64 *)(%[c] + 0)" : [c] "+r"(ctx), [v] "=r"(v));
	sink = v;
	return 0;
}

SEC("tp_btf/sched_switch") int moved_back(u64 *ctx)
{
	u64 v;

	asm volatile("%[c] += 8; %[c] += -8; %[v] = *(u64 *)(%[c] + 8)" : [c] "+r"(ctx), [v] "=r"(v));
	sink = v;
	return 0;
}

SEC("fentry/vfs_open") int moved_by_nothing(u64 *ctx)
{
	sink = at(ctx, 0);
	return 0;
}

/* Like BPF_PROG's arguments that are at another place in older kernels. */
SEC("tp_btf/sched_switch") int moved_by_version(u64 *ctx)
{
	sink = at(ctx, LINUX_KERNEL_VERSION < KERNEL_VERSION(5, 11, 0) ? 8 : 0);
	return 0;
}

/* The offset of the member is that in the kernel. */
struct open_how {
	u64 flags, mode;
} __attribute__((preserve_access_index));

SEC("fentry/vfs_open") int moved_by_relocation(u64 *ctx)
{
	sink = at(ctx, bpf_core_field_offset(struct open_how, mode));
	return 0;
}

SEC("fentry/vfs_open") int moved_by_relocation_guarded(u64 *ctx)
{
	if (LINUX_KERNEL_VERSION >= KERNEL_VERSION(7, 1, 0))
		sink = at(ctx, bpf_core_field_offset(struct open_how, mode));
	return 0;
}

SEC("kprobe/vfs_open") int kprobe_moved(u64 *ctx)
{
	u64 v;

	asm volatile("%[c] += 8; %[v] = *(u64 *)(%[c] + 0)" : [c] "+r"(ctx), [v] "=r"(v));
	sink = v;
	return 0;
}

/* Its context is rewritten by the verifier. */
SEC("tc") int tc_moved(u32 *ctx)
{
	u32 v;

	asm volatile("%[c] += 8; %[v] = *(u32 *)(%[c] + 0)" : [c] "+r"(ctx), [v] "=r"(v));
	sink = v;
	return 0;
}
