// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Guards in a struct on the stack of a program that callbacks get a pointer to, as in tracers that walk lists with bpf_loop.
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static long (*no_such_helper)(void) = (void *)9999;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, u32);
} elements SEC(".maps");

struct walk {
	struct task_struct *task;
	u64 *sum;
	char allowed;
};

static __noinline long step(u32 i, struct walk *w)
{
	struct task_struct *t = w->task;

	*w->sum += BPF_CORE_READ(t, pid);
	return w->allowed == 1 ? no_such_helper() : 0;
}

/* The second turn is what verifiers since Linux 6.7 take. */
static __noinline long step_sets(u32 i, struct walk *w)
{
	if (w->allowed == 1)
		return no_such_helper();
	w->allowed = 1;
	return 0;
}

static __noinline long element(void *map, u32 *key, u32 *value, struct walk *w)
{
	return w->allowed == 1 ? no_such_helper() : 0;
}

SEC("raw_tp/sched_switch") int loop_guarded(u64 *ctx)
{
	u64 sum = 0;
	struct walk w = {.task = (void *)ctx[2], .sum = &sum};

	bpf_loop(3, step, &w, 0);
	return sum == 7;
}

SEC("raw_tp/sched_switch") int loop_reached(u64 *ctx)
{
	u64 sum = 0;
	struct walk w = {.task = (void *)ctx[2], .sum = &sum, .allowed = 1};

	bpf_loop(3, step, &w, 0);
	return sum == 7;
}

SEC("raw_tp/sched_switch") int loop_second_turn(u64 *ctx)
{
	struct walk w = {};

	bpf_loop(3, step_sets, &w, 0);
	return 0;
}

SEC("raw_tp/sched_switch") int elements_guarded(u64 *ctx)
{
	struct walk w = {};

	bpf_for_each_map_elem(&elements, element, &w, 0);
	return 0;
}

SEC("raw_tp/sched_switch") int elements_reached(u64 *ctx)
{
	struct walk w = {.allowed = 1};

	bpf_for_each_map_elem(&elements, element, &w, 0);
	return 0;
}
