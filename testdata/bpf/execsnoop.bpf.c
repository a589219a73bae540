// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A tracer of exec and exit: tracepoints whose contexts are relocated, pointer chains of several steps,
// a hash and a ring buffer.
#include "kernel.h"

struct event {
	pid_t pid, ppid;
	uid_t uid;
	u32 mnt_ns, pid_ns, arg_len;
	u64 lived_ns;
	char comm[TASK_COMM_LEN], filename[64], nodename[65];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, pid_t);
	__type(value, u64);
} started SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} events SEC(".maps");

SEC("tracepoint/sched/sched_process_exec")
int handle_exec(struct trace_event_raw_sched_process_exec *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	pid_t pid = ctx->pid;
	u64 now = bpf_ktime_get_ns();
	struct event *e;
	unsigned int level;

	bpf_map_update_elem(&started, &pid, &now, BPF_ANY);
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (!e)
		return 0;
	e->pid = pid;
	e->ppid = BPF_CORE_READ(task, real_parent, tgid);
	e->uid = BPF_CORE_READ(task, cred, uid.val);
	e->mnt_ns = BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);
	level = BPF_CORE_READ(task, thread_pid, level);
	e->pid_ns = BPF_CORE_READ(task, thread_pid, numbers[level].ns, ns.inum);
	e->arg_len = BPF_CORE_READ(task, mm, arg_end) - BPF_CORE_READ(task, mm, arg_start);
	e->lived_ns = 0;
	BPF_CORE_READ_STR_INTO(&e->comm, task, comm);
	BPF_CORE_READ_STR_INTO(&e->nodename, task, nsproxy, uts_ns, name.nodename);
	bpf_probe_read_kernel_str(e->filename, sizeof(e->filename), (void *)ctx + (ctx->__data_loc_filename & 0xffff));
	bpf_ringbuf_submit(e, 0);
	return 0;
}

SEC("tracepoint/sched/sched_process_exit")
int handle_exit(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	pid_t pid = bpf_get_current_pid_tgid() >> 32;
	u64 *start = bpf_map_lookup_elem(&started, &pid);
	struct event *e;

	if (!start)
		return 0;
	e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	if (e) {
		__builtin_memset(e, 0, sizeof(*e));
		e->pid = pid;
		e->lived_ns = bpf_ktime_get_ns() - *start;
		BPF_CORE_READ_STR_INTO(&e->comm, task, group_leader, comm);
		bpf_ringbuf_submit(e, 0);
	}
	bpf_map_delete_elem(&started, &pid);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
