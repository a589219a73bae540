// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A program with relocations whose section .BTF.ext is taken out after the build, as careless stripping does:
// .BTF is there and nothing says that it needs relocation. It loads, and reads from the wrong place.
#include "kernel.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, pid_t);
	__type(value, u64);
} seen SEC(".maps");

SEC("raw_tp/sched_switch")
int switched(void *ctx)
{
	struct task_struct *t = (struct task_struct *)bpf_get_current_task();
	u64 start = BPF_CORE_READ(t, start_time);
	pid_t pid = BPF_CORE_READ(t, tgid);

	bpf_map_update_elem(&seen, &pid, &start, BPF_ANY);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
