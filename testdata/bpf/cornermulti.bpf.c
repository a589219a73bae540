// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Sections that came with libbpf 1.8: programs for all functions that match a pattern, and tracepoints of programs that may sleep.
// Programs whose name ends in _fails are those that no kernel loads or attaches.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("fentry.multi/bpf_fentry_test1") int one(void *ctx) { return 0; }

SEC("fentry.multi/bpf_fentry_test*") int pattern(void *ctx) { return 0; }

SEC("fexit.multi") int chosen(void *ctx) { return 0; }

SEC("fexit.multi/vfs_read") int result(void *ctx)
{
	u64 value;

	bpf_get_func_ret(ctx, &value);
	return 0;
}

SEC("fsession.multi/vfs_read") int session(void *ctx) { return 0; }

SEC("fentry.multi.s/bpf_fentry_test1") int sleeps(void *ctx)
{
	char c;

	bpf_copy_from_user(&c, 1, 0);
	return 0;
}

SEC("fentry.multi/vfs_read") int argument_fails(volatile u64 *ctx) { return ctx[0] ? 0 : 0; }

SEC("fexit.multi/vfs_read") int one_fails(void *ctx) { return 1; }

SEC("fentry.multi/migrate_disable") int denied_fails(void *ctx) { return 0; }

SEC("fentry.multi/do_exit") int entered(void *ctx) { return 0; }

SEC("fexit.multi/do_exit") int noreturn_fails(void *ctx) { return 0; }

SEC("fexit.multi/no_such_function") int missing_fails(void *ctx) { return 0; }

SEC("fentry.multi/no_such_*") int unmatched_fails(void *ctx) { return 0; }

SEC("tp.s/syscalls/sys_enter_getpid") int syscall_event(void *ctx)
{
	char c;

	bpf_copy_from_user(&c, 1, 0);
	return 0;
}

SEC("tracepoint.s/sched/sched_switch") int event_fails(void *ctx) { return 0; }

SEC("raw_tp.s/sys_enter") int raw(void *ctx) { return 0; }

SEC("raw_tracepoint.s/sched_switch") int raw_fails(void *ctx) { return 0; }

SEC("tp_btf.s/sys_exit") int by_btf(void *ctx)
{
	char c;

	bpf_copy_from_user(&c, 1, 0);
	return 0;
}

SEC("tp_btf.s/sched_switch") int by_btf_fails(void *ctx) { return 0; }
