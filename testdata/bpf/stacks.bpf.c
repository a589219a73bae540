// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * Functions that call each other and whose stacks together are larger than the 512 bytes of a program, and some whose stacks are not.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

/* Uses n bytes of the stack, of which the compiler must not drop any. */
#define STACK(n) \
	char b[n], *all = b; \
	__builtin_memset(b, 1, n); \
	hide(all)

#define FUNCTION(name, n, result) static __noinline int name(void) { STACK(n); return all[0] + (result); }

FUNCTION(bytes160, 160, 0)
FUNCTION(bytes200, 200, 0)
FUNCTION(bytes264, 264, 0)
FUNCTION(bytes304, 304, 0)
FUNCTION(bytes160_twice, 160, bytes160())

#define PROGRAM(section, name, n, result) SEC(section) int name(void *ctx) { STACK(n); return (all[0] + (result)) & 0; }

PROGRAM("kprobe/vfs_read", kprobe_604, 300, bytes304())
PROGRAM("kretprobe/vfs_read", kprobe_400, 200, bytes200())
PROGRAM("kprobe/vfs_write", kprobe_464, 264, bytes200())
/* 240 + 264 bytes are 512 if each is rounded up to 16 bytes, and 544 if to 32. */
PROGRAM("kprobe/vfs_open", kprobe_rounded, 240, bytes264())
PROGRAM("kprobe/vfs_unlink", kprobe_three, 200, bytes160_twice())
PROGRAM("kprobe/vfs_rename", kprobe_one, 496, 0)
PROGRAM("uprobe", uprobe_604, 300, bytes304())
PROGRAM("tracepoint/sched/sched_switch", tracepoint_604, 300, bytes304())
PROGRAM("perf_event", perf_event_604, 300, bytes304())
PROGRAM("raw_tp/sched_switch", raw_tp_604, 300, bytes304())
PROGRAM("tp_btf/sched_switch", tp_btf_604, 300, bytes304())
PROGRAM("fentry/vfs_read", fentry_604, 300, bytes304())
PROGRAM("iter/task", iter_604, 300, bytes304())
PROGRAM("lsm/file_open", lsm_604, 300, bytes304())
PROGRAM("xdp", xdp_604, 300, bytes304())
PROGRAM("tc", tc_604, 300, bytes304())
