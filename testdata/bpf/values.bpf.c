// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/*
 * Locks, timers and lists in values of maps, which not every type of programs may use.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct bpf_spin_lock { u32 val; };
struct bpf_timer { u64 opaque[2]; } __attribute__((aligned(8)));
struct bpf_wq { u64 opaque[2]; } __attribute__((aligned(8)));

struct locked { struct bpf_spin_lock lock; u32 n; };
struct timed { struct bpf_timer timer; u64 n; };
struct bpf_res_spin_lock { u32 val; };
struct resilient { struct bpf_res_spin_lock lock; u32 n; };
struct queued { u64 n; struct bpf_wq work; };

#define MAP(name, of) \
	struct { \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__uint(max_entries, 1); \
		__type(key, u32); \
		__type(value, struct of); \
	} name SEC(".maps")

MAP(locks, locked);
MAP(res_locks, resilient);
MAP(timers, timed);
MAP(queues, queued);

/* Refers to a map, which is enough: verifiers look at all maps of a program. */
#define PROGRAM(section, name, map) \
	SEC(section) int name(void *ctx) \
	{ \
		u32 zero = 0; \
\
		return bpf_map_lookup_elem(&map, &zero) == NULL; \
	}

PROGRAM("kprobe/vfs_read", kprobe_lock, locks)
PROGRAM("tracepoint/sched/sched_switch", tracepoint_lock, locks)
PROGRAM("socket", socket_lock, locks)
PROGRAM("tc", tc_lock, locks)
PROGRAM("tp_btf/sched_switch", tp_btf_lock, locks)
PROGRAM("lsm.s/bprm_committed_creds", sleepable_lock, locks)
PROGRAM("kprobe/vfs_write", kprobe_timer, timers)
PROGRAM("perf_event", perf_event_timer, timers)
PROGRAM("raw_tp/sched_switch", raw_tp_timer, timers)
PROGRAM("tc", tc_timer, timers)
PROGRAM("tp_btf/sched_switch", tp_btf_timer, timers)
PROGRAM("kprobe/vfs_open", kprobe_queue, queues)
PROGRAM("tc", tc_queue, queues)
PROGRAM("kprobe/vfs_unlink", kprobe_res_lock, res_locks)
PROGRAM("socket", socket_res_lock, res_locks)
PROGRAM("tc", tc_res_lock, res_locks)
