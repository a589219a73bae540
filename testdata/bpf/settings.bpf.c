// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// What depends on the kernel's configuration and on its symbols, which are not in its BTF. On a kernel that has
// the settings that distributions' kernels have, each program loads.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern bool CONFIG_BPF_SYSCALL __kconfig;
extern enum libbpf_tristate CONFIG_BPF_JIT __kconfig __weak;
extern char CONFIG_BPF_EVENTS __kconfig __weak;
extern int CONFIG_HZ __kconfig __weak;
extern char CONFIG_DEFAULT_HOSTNAME[16] __kconfig __weak;
extern bool CONFIG_NO_SUCH_SETTING __kconfig __weak;

extern const void vfs_read __ksym __weak;
extern const void no_such_symbol __ksym __weak;
extern const void init_net __ksym __weak;

volatile u64 sink;

struct nowhere_to_be_found {
	int member;
} __attribute__((preserve_access_index));

/* Verifiers refuse it where they reach it. */
#define REFUSED (sink = bpf_core_field_offset(struct nowhere_to_be_found, member))

SEC("raw_tp/sched_switch") int truth(void *ctx)
{
	if (!CONFIG_BPF_SYSCALL)
		REFUSED;
	return 0;
}

SEC("raw_tp/sched_switch") int tristate(void *ctx)
{
	if (CONFIG_BPF_JIT != TRI_YES)
		REFUSED;
	return 0;
}

SEC("raw_tp/sched_switch") int letter(void *ctx)
{
	if (CONFIG_BPF_EVENTS != 'y')
		REFUSED;
	return 0;
}

SEC("raw_tp/sched_switch") int number(void *ctx)
{
	if (CONFIG_HZ < 100)
		REFUSED;
	return 0;
}

SEC("raw_tp/sched_switch") int text(void *ctx)
{
	if (CONFIG_DEFAULT_HOSTNAME[0] != '(')
		REFUSED;
	return 0;
}

SEC("raw_tp/sched_switch") int not_set(void *ctx)
{
	if (CONFIG_NO_SUCH_SETTING)
		REFUSED;
	return 0;
}

SEC("raw_tp/sched_switch") int symbol(void *ctx)
{
	if (!&vfs_read)
		REFUSED;
	return 0;
}

SEC("raw_tp/sched_switch") int no_symbol(void *ctx)
{
	if (&no_such_symbol)
		REFUSED;
	return 0;
}

/* A variable that every kernel has, but with CONFIG_KALLSYMS_ALL alone among its symbols. */
SEC("raw_tp/sched_switch") int variable(void *ctx)
{
	if (!&init_net)
		REFUSED;
	return 0;
}

SEC("kprobe/vfs_read") int probed(void *ctx)
{
	return 0;
}

SEC("kprobe/no_such_function") int nothing_to_probe(void *ctx)
{
	return 0;
}

SEC("kprobe.multi/no_such_func*") int nothing_matches(void *ctx)
{
	return 0;
}
