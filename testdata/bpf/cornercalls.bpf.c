// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Helpers and kfuncs that some of Debian's kernels let programs of a type call and others do not, one in each program.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *p) __ksym __weak;
extern void bpf_rcu_read_lock(void) __ksym __weak;
extern void bpf_rcu_read_unlock(void) __ksym __weak;
struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym __weak;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym __weak;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym __weak;
extern void bpf_throw(u64 cookie) __ksym __weak;

static long nothing(u32 i, void *ctx) { return 0; }

/* Helpers that came with Linux 5.11 to 6.1. bpf_get_func_ip is for kprobes and trampolines only. */
SEC("raw_tp/sys_enter") int ktime_tai(void *ctx) { return bpf_ktime_get_tai_ns() & 1; }

SEC("raw_tp/sys_enter") int coarse(void *ctx) { return bpf_ktime_get_coarse_ns() & 1; }

SEC("raw_tp/sys_enter") int func_ip_raw(void *ctx) { return bpf_get_func_ip(ctx) & 1; }

SEC("kprobe/vfs_read") int func_ip(void *ctx) { return bpf_get_func_ip(ctx) & 1; }

SEC("kprobe/vfs_read") int cookie(void *ctx) { return bpf_get_attach_cookie(ctx) & 1; }

SEC("fentry/vfs_read") int cookie_fentry(u64 *ctx) { return bpf_get_attach_cookie(ctx) & 0; }

SEC("tp/sched/sched_switch") int cookie_tp(void *ctx) { return bpf_get_attach_cookie(ctx) & 1; }

SEC("raw_tp/sys_enter") int cookie_raw(void *ctx) { return bpf_get_attach_cookie(ctx) & 1; }

SEC("fentry/vfs_read") int arguments(u64 *ctx) { return bpf_get_func_arg_cnt(ctx) & 0; }

SEC("kprobe/vfs_read") int current_btf(void *ctx) { return bpf_get_current_task_btf() != NULL; }

SEC("socket") int current_btf_socket(void *ctx) { return bpf_get_current_task_btf() != NULL; }

SEC("raw_tp/sys_enter") int compares(void *ctx)
{
	char a[4] = "abc";
	static const char b[4] = "abd";

	return bpf_strncmp(a, sizeof(a), b);
}

SEC("raw_tp/sys_enter") int loops(void *ctx) { return bpf_loop(3, nothing, NULL, 0); }

SEC("xdp") int loops_xdp(void *ctx) { return bpf_loop(3, nothing, NULL, 0) & 1; }

SEC("tc") int cookie_of_namespace(void *ctx) { return bpf_get_netns_cookie(ctx) & 1; }

SEC("sockops") int cookie_of_socket(void *ctx) { return bpf_get_netns_cookie(ctx) & 1; }

SEC("xdp") int length(void *ctx) { return bpf_xdp_get_buff_len(ctx) & 1; }

SEC("tc") int tstamp(void *ctx) { return bpf_skb_set_tstamp(ctx, 0, 0) & 1; }

SEC("cgroup_skb/egress") int retval(void *ctx) { return bpf_get_retval() & 1; }

SEC("cgroup/bind4") int set_retval(void *ctx) { return bpf_set_retval(0) & 1; }

/* bpf_d_path since Linux 5.11 in LSM, for hooks that may sleep. */
SEC("lsm/file_open") int path_of_open(u64 *ctx)
{
	static char buf[64];

	bpf_d_path(&((struct file *)ctx[0])->f_path, buf, sizeof(buf));
	return 0;
}

SEC("fentry/vfs_truncate") int path_of_truncate(u64 *ctx)
{
	static char buf[64];

	bpf_d_path((struct path *)ctx[0], buf, sizeof(buf));
	return 0;
}

/* Kfuncs: bpf_rcu_read_lock, bpf_task_from_pid since Linux 6.2; iterators since 6.4; exceptions since 6.7. */
static __always_inline int from_pid(void)
{
	struct task_struct *t = bpf_task_from_pid(1);

	if (t)
		bpf_task_release(t);
	return 0;
}

SEC("tp_btf/sched_switch") int task_tracing(u64 *ctx) { return from_pid(); }

SEC("tc") int task_tc(void *ctx) { return from_pid(); }

SEC("xdp") int task_xdp(void *ctx) { return from_pid(); }

SEC("kprobe/vfs_read") int task_kprobe(void *ctx) { return from_pid(); }

SEC("raw_tp/sys_enter") int task_raw(void *ctx) { return from_pid(); }

SEC("perf_event") int task_event(void *ctx) { return from_pid(); }

SEC("syscall") int task_call(void *ctx) { return from_pid(); }

SEC("socket") int task_socket(void *ctx) { return from_pid(); }

SEC("cgroup/connect4") int task_connect(void *ctx) { return from_pid() + 1; }

SEC("cgroup_skb/egress") int task_skb(void *ctx) { return from_pid() + 1; }

SEC("sockops") int task_sockops(void *ctx) { return from_pid(); }

SEC("raw_tp/sys_enter") int read_lock(void *ctx)
{
	bpf_rcu_read_lock();
	bpf_rcu_read_unlock();
	return 0;
}

SEC("raw_tp/sys_enter") int counts(void *ctx)
{
	struct bpf_iter_num it;
	int *v, n = 0;

	bpf_iter_num_new(&it, 0, 3);
	while ((v = bpf_iter_num_next(&it)))
		n += *v;
	bpf_iter_num_destroy(&it);
	return n & 1;
}

SEC("tc") int throws(struct __sk_buff *ctx)
{
	if (bpf_get_prandom_u32() == 7)
		bpf_throw(0);
	return 0;
}
