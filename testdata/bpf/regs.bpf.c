// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Registers of three machines, as bpf_tracing.h reads them. The objects are named as bpf2go does.
#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct user_pt_regs {
	u64 regs[31], sp, pc, pstate;
};
#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, u64);
} seen SEC(".maps");

SEC("kprobe/do_exit")
int BPF_KPROBE(enter_exit, long code)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 key = BPF_CORE_READ(task, tgid), value = code;

	bpf_map_update_elem(&seen, &key, &value, BPF_ANY);
	return 0;
}

SEC("kretprobe/vfs_read")
int exit_read(struct pt_regs *ctx)
{
	u64 key = 0, value = PT_REGS_RC_CORE(ctx);

	bpf_map_update_elem(&seen, &key, &value, BPF_ANY);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
