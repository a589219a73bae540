// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// One program for each fact that some of Debian's kernels have and others lack: sections, arguments, results, contexts.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Since Linux 5.18. */
SEC("xdp.frags") int frags(struct xdp_md *ctx) { return XDP_PASS; }

SEC("xdp.frags/devmap") int frags_devmap(struct xdp_md *ctx) { return XDP_PASS; }

SEC("xdp.frags/cpumap") int frags_cpumap(struct xdp_md *ctx) { return XDP_PASS; }

/* Since Linux 6.0. */
SEC("uprobe.s") int uprobe_sleeps(void *ctx) { return 0; }

SEC("uretprobe.s") int uretprobe_sleeps(void *ctx) { return 0; }

SEC("usdt.s") int usdt_sleeps(void *ctx) { return 0; }

SEC("lsm_cgroup/socket_bind") int of_cgroup(u64 *ctx) { return 1; }

/* Since Linux 5.10. */
SEC("fentry.s/bpf_fentry_test1") int fentry_test(u64 *ctx) { return 0; }

SEC("fmod_ret.s/bpf_modify_return_test") int fmod_ret_test(u64 *ctx) { return 0; }

/* Since Linux 5.14. */
SEC("syscall") int of_call(void *ctx) { return 0; }

SEC("sk_reuseport/migrate") int migrate(void *ctx) { return 1; }

/* Since Linux 5.15 and 5.18. */
SEC("perf_event") int event(void *ctx) { return 0; }

SEC("kprobe.multi/vfs_read") int multi(void *ctx) { return 0; }

/* Results: up to 3 since Linux 5.12; only 0 and errors since 6.12. */
SEC("cgroup/bind4") int bind_2(void *ctx) { return 2; }

SEC("cgroup/bind6") int bind_3(void *ctx) { return 3; }

SEC("lsm/file_open") int lsm_1(u64 *ctx) { return 1; }

/* Arguments: a pointer to a number since Linux 5.17, to a typedef of one since 6.1, to const void since 6.17. */
SEC("fentry/vfs_read") int offset(u64 *ctx) { return ctx[3] == 0 ? 0 : 0; }

SEC("fexit/vfs_read") int offset_kept(u64 *ctx)
{
	bpf_printk("%llx", ctx[3]);
	return 0;
}

SEC("fexit/bpf_fentry_test1") int number(u64 *ctx)
{
	bpf_printk("%llx", ctx[0]);
	return 0;
}

SEC("lsm/inode_setxattr") int value(u64 *ctx)
{
	bpf_printk("%llx", ctx[3]);
	return 0;
}

/* The second argument may be null. Since Linux 6.12 it has to be compared before. */
struct task_struct___pi {
	int pid;
} __attribute__((preserve_access_index));

SEC("tp_btf/sched_pi_setprio") int null_unseen(u64 *ctx)
{
	struct task_struct___pi *to = (void *)ctx[1];

	bpf_printk("%d", to->pid);
	return 0;
}

SEC("tp_btf/sched_pi_setprio") int null_seen(u64 *ctx)
{
	struct task_struct___pi *to = (void *)ctx[1];

	if (to)
		bpf_printk("%d", to->pid);
	return 0;
}

/* Functions that kernels refuse: since Linux 5.14, and since 6.15 those that do not return. */
SEC("fentry/migrate_disable") int denied(u64 *ctx) { return 0; }

SEC("fexit/do_exit") int never_returns(u64 *ctx) { return 0; }

SEC("fentry/do_exit") int begins(u64 *ctx) { return 0; }

/* Hooks that newer kernels close. */
SEC("lsm/vm_enough_memory") int closed_6_12(u64 *ctx) { return 0; }

SEC("lsm/file_alloc_security") int closed_7_0(u64 *ctx) { return 0; }

SEC("lsm/xfrm_decode_session") int closed_7_3(u64 *ctx) { return 0; }

/* Hooks that may sleep since Linux 6.1, 6.12, 7.2; and one until then. */
SEC("lsm.s/socket_bind") int sleeps_bind(u64 *ctx) { return 0; }

SEC("lsm.s/path_chmod") int sleeps_chmod(u64 *ctx) { return 0; }

SEC("lsm.s/inode_removexattr") int sleeps_removexattr(u64 *ctx) { return 0; }

SEC("lsm.s/inet_conn_established") int sleeps_established(u64 *ctx) { return 0; }

/* A stack slot that was not written is read since Linux 6.3, and in updates of 6.1. */
SEC("socket") int unwritten(void *ctx)
{
	u64 r;

	asm volatile("%[r] = *(u64 *)(r10 - 64)" : [r] "=r"(r));
	return r == 7;
}

/* Since Linux 5.12, at an offset that is known by its bounds alone. */
SEC("socket") int variable_offset(struct __sk_buff *ctx)
{
	u64 r;

	asm volatile("*(u64 *)(r10 - 8) = %[zero]; *(u64 *)(r10 - 16) = %[zero]; r1 = %[n]; r1 &= 7; r2 = r10; r2 += -16; r2 += r1;"
		     "%[r] = *(u8 *)(r2 + 0)"
		     : [r] "=r"(r)
		     : [zero] "r"(0UL), [n] "r"((u64)bpf_get_prandom_u32())
		     : "r1", "r2", "memory");
	return r == 7;
}
