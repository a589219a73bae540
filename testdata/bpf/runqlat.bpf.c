// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Run-queue latency: tp_btf programs that read trusted pointers directly, so that relocations sit in the load
// instructions themselves, and their sizes too (`long state` is 4 bytes on a 32-bit kernel); a bitfield read
// without a helper; a per-CPU array. Built for -mcpu=v3, which has 32-bit registers and jumps.
#include "kernel.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 10240);
	__type(key, pid_t);
	__type(value, u64);
} woken SEC(".maps");

struct stat {
	u64 count, total_ns, iowait;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 140);
	__type(key, u32);
	__type(value, struct stat);
} by_prio SEC(".maps");

static __always_inline long state_of(struct task_struct *t)
{
	struct task_struct___old *old = (void *)t;

	return bpf_core_field_exists(t->__state) ? t->__state : old->state;
}

static __always_inline int enqueue(struct task_struct *t)
{
	u64 now = bpf_ktime_get_ns();
	pid_t pid = t->pid;

	return pid ? bpf_map_update_elem(&woken, &pid, &now, BPF_ANY) : 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *p)
{
	return enqueue(p);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(sched_wakeup_new, struct task_struct *p)
{
	return enqueue(p);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u32 prio = next->prio;
	pid_t pid = next->pid;
	struct stat *s;
	u64 *start;

	if (state_of(prev) == 0)
		enqueue(prev);
	start = bpf_map_lookup_elem(&woken, &pid);
	if (!start)
		return 0;
	s = bpf_map_lookup_elem(&by_prio, &prio);
	if (s) {
		s->count++;
		s->total_ns += bpf_ktime_get_ns() - *start;
		s->iowait += BPF_CORE_READ_BITFIELD(next, in_iowait);
	}
	bpf_map_delete_elem(&woken, &pid);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
