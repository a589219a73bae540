// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Functions that a timer calls, and the stacks of what they call: kernels look at them since Linux 6.5, and in updates of 6.1.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct bpf_timer {
	u64 opaque[2];
} __attribute__((aligned(8)));

struct value {
	struct bpf_timer timer;
};

struct {
	__uint(type, 2); /* BPF_MAP_TYPE_ARRAY */
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct value);
} timers SEC(".maps");

/* Uses n bytes of the stack, of which the compiler must not drop any. */
#define STACK(n) \
	char b[n], *all = b; \
	__builtin_memset(b, 1, n); \
	hide(all)

static __noinline int bytes200(void) { STACK(200); return all[0]; }
static __noinline int bytes304(void) { STACK(304); return all[0]; }

static int late_400(void *map, u32 *key, struct value *v) { STACK(200); return (all[0] + bytes200()) & 0; }
static int late_608(void *map, u32 *key, struct value *v) { STACK(304); return (all[0] + bytes304()) & 0; }

/* The program has 304 bytes itself, which do not count to those of the function. */
#define PROGRAM(name, late) \
	SEC("tc") int name(struct __sk_buff *skb) \
	{ \
		u32 key = 0; \
		struct value *v; \
		STACK(304); \
		v = bpf_map_lookup_elem(&timers, &key); \
		if (v && !bpf_timer_init(&v->timer, &timers, 1)) \
			bpf_timer_set_callback(&v->timer, late); \
		return all[0] & 0; \
	}

PROGRAM(small, late_400)
PROGRAM(large, late_608)
