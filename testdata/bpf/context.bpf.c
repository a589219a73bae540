// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What programs read of their context: arguments that some kernels have and others do not, of types that
// verifiers let programs read or not. The names say what is read; the tests of internal/check say what
// becomes of it.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern int LINUX_KERNEL_VERSION __kconfig;

volatile u64 sink;

/* vfs_open(const struct path *, struct file *) is the same everywhere. */
SEC("fentry/vfs_open") int both(u64 *ctx)
{
	sink = ctx[0];
	sink = ctx[1];
	return 0;
}

SEC("fentry/vfs_open") int one_too_many(u64 *ctx)
{
	sink = ctx[2];
	return 0;
}

SEC("fexit/vfs_open") int result(u64 *ctx)
{
	sink = ctx[2];
	return 0;
}

SEC("fexit/vfs_open") int behind_result(u64 *ctx)
{
	sink = ctx[3];
	return 0;
}

SEC("fentry/vfs_open") int through(u64 *ctx)
{
	struct file *f = (void *)ctx[1];

	sink = f->f_inode->i_ino;
	return 0;
}

/* The first argument is a struct path, of 16 bytes. */
struct path___wrong {
	u64 fields[40];
};

SEC("fentry/vfs_open") int beyond(u64 *ctx)
{
	struct path___wrong *p = (void *)ctx[0];

	sink = p->fields[30];
	return 0;
}

/* The first member is a pointer. */
SEC("fentry/vfs_open") int part_of_member(u64 *ctx)
{
	sink = ((u8 *)ctx[0])[1];
	return 0;
}

SEC("fentry/vfs_open") int half(u64 *ctx)
{
	sink = *(u32 *)ctx;
	return 0;
}

SEC("fentry/vfs_open") int crooked(u64 *ctx)
{
	sink = *(u32 *)((void *)ctx + 4);
	return 0;
}

SEC("fentry/vfs_open") int written(u64 *ctx)
{
	ctx[0] = 1;
	return 0;
}

static __attribute__((noinline)) u64 third(u64 *ctx)
{
	return ctx[2];
}

SEC("fentry/vfs_open") int in_function(u64 *ctx)
{
	sink = third(ctx);
	return 0;
}

/* vfs_read(struct file *, char *, size_t, loff_t *) */
SEC("fentry/vfs_read") int number(u64 *ctx)
{
	sink = ctx[2];
	return 0;
}

SEC("fentry/vfs_read") int to_char(u64 *ctx)
{
	sink = ctx[1];
	return 0;
}

SEC("fentry/vfs_read") int to_number(u64 *ctx)
{
	sink = ctx[3];
	return 0;
}

SEC("fentry/vfs_read") int through_number(u64 *ctx)
{
	sink = *(u64 *)ctx[2];
	return 0;
}

/* strsep(char **, const char *) */
SEC("fentry/strsep") int to_pointer(u64 *ctx)
{
	sink = ctx[0];
	return 0;
}

/* udp_setsockopt(struct sock *, int, int, sockptr_t, unsigned int): the fourth is a struct of 16 bytes. */
SEC("fentry/udp_setsockopt") int with_struct(u64 *ctx)
{
	sink = ctx[1];
	return 0;
}

SEC("fmod_ret/security_file_open") int modified(u64 *ctx)
{
	return ctx[1];
}

/* sched_switch: a bool, two tasks, and since Linux 5.18 a number. */
SEC("tp_btf/sched_switch") int task(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[2];

	sink = t->pid;
	return 0;
}

SEC("tp_btf/sched_switch") int fourth(u64 *ctx)
{
	sink = ctx[3];
	return 0;
}

SEC("tp_btf/sched_switch") int fourth_guarded(u64 *ctx)
{
	if (LINUX_KERNEL_VERSION >= KERNEL_VERSION(5, 18, 0))
		sink = ctx[3];
	return 0;
}

SEC("raw_tp/sched_switch") int fourth_raw(u64 *ctx)
{
	sink = ctx[3];
	return 0;
}

SEC("raw_tp/sched_switch") int thirteenth_raw(u64 *ctx)
{
	sink = ctx[12];
	return 0;
}

/* struct bpf_iter_meta *, struct task_struct * */
SEC("iter/task") int iterated(u64 *ctx)
{
	sink = ctx[0];
	sink = ctx[1];
	return 0;
}

SEC("iter/task") int iterated_too_many(u64 *ctx)
{
	sink = ctx[2];
	return 0;
}

SEC("tp/sched/sched_process_exec") int record(struct trace_event_raw_sched_process_exec *ctx)
{
	sink = ctx->old_pid;
	return 0;
}

SEC("tp/sched/sched_process_exec") int beyond_record(u64 *ctx)
{
	sink = ctx[100];
	return 0;
}

SEC("tp/sched/sched_process_exec") int before_record(u64 *ctx)
{
	sink = ctx[0];
	return 0;
}

/* sk is at 184 in struct bpf_sock_ops. In struct sock_common, with which others of sockets begin, skc_family is at 16, and at 24 a
   pointer to the next. */
SEC("sockops") int socket(u64 *ctx)
{
	u16 *s = ctx[23] ? (void *)bpf_skc_to_tcp_sock((void *)ctx[23]) : 0;

	if (s)
		sink = s[8];
	return 1;
}

SEC("sockops") int part_of_socket(u64 *ctx)
{
	u8 *s = ctx[23] ? (void *)bpf_skc_to_tcp_sock((void *)ctx[23]) : 0;

	if (s)
		sink = s[25];
	return 1;
}
