// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Programs that do not load on some or on any kernel, each for the mistake that its comment names.
// expect.json says which fails on which kernel.
#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct___nowhere {
	int no_such_field;
};

struct nowhere {
	u64 field;
	struct nowhere *next;
};

struct inode___sec {
	time64_t i_ctime_sec;
};

struct timespec64 {
	time64_t tv_sec;
};

struct inode___spec {
	struct timespec64 i_ctime;
};

/* The same name as the kernel's, of another kind. */
struct task_struct___kind {
	struct {
		int no;
	} pid;
};

union list_head___union {
	void *next;
};

/* A signed member, whose load cannot be made wider. */
struct trace_event_raw_inet_sock_set_state___wide {
	s64 newstate;
};

#pragma clang attribute pop

enum rpm_status { RPM_ACTIVE, RPM_BLOCKED = 4 };

/* Not a name of the kernel's, and not looked through. */
typedef struct task_struct our_task_t;

static u64 (*bpf_no_such_helper)(void) = (void *)9999;

const volatile u32 wanted_depth = 3;
bool use_nowhere; /* writable: the verifier does not know its value */
u64 out[4];

static __always_inline struct task_struct *current(void)
{
	return (struct task_struct *)bpf_get_current_task();
}

#define BROKEN(name) SEC("raw_tp/sys_enter") int name(void *ctx)

/* No kernel has it. */
BROKEN(no_guard)
{
	struct task_struct___nowhere *t = (void *)current();

	out[0] = BPF_CORE_READ(t, no_such_field);
	return 0;
}

BROKEN(no_type)
{
	struct nowhere *n = ctx;

	out[0] = BPF_CORE_READ(n, field);
	return 0;
}

/* Kernels until 5.13 have it. */
BROKEN(only_old)
{
	struct task_struct___old *t = (void *)current();

	out[0] = BPF_CORE_READ(t, state);
	return 0;
}

/* Kernels since 5.14 have it. */
BROKEN(only_new)
{
	out[0] = BPF_CORE_READ(current(), __state);
	return 0;
}

/* The branches the wrong way round. */
BROKEN(wrong_branch)
{
	struct task_struct *t = current();
	struct task_struct___old *old = (void *)t;

	if (bpf_core_field_exists(t->__state))
		out[0] = BPF_CORE_READ(old, state);
	else
		out[0] = BPF_CORE_READ(t, __state);
	return 0;
}

/* A guard at its place, but the compiler takes the offset, which does not change, out of the loop. */
BROKEN(hoisted)
{
	struct nowhere *n = ctx;

#pragma clang loop unroll(disable)
	for (u32 i = 0; i < wanted_depth && i < 16; i++) {
		out[0] += i;
		if (!bpf_core_type_exists(struct nowhere))
			continue;
		n = BPF_CORE_READ(n, next);
	}
	return 0;
}

/* The guard asks for one member, the access takes another. */
BROKEN(wrong_field)
{
	struct task_struct___nowhere *t = (void *)current();

	if (bpf_core_field_exists(((struct task_struct *)0)->pid))
		out[0] = BPF_CORE_READ(t, no_such_field);
	return 0;
}

/* The guard asks for the type alone. */
BROKEN(type_is_not_field)
{
	struct inode___sec *inode = ctx;

	if (bpf_core_type_exists(struct inode))
		out[0] = BPF_CORE_READ(inode, i_ctime_sec);
	return 0;
}

/* One of two exists, which says nothing about this one. */
BROKEN(or_guard)
{
	struct inode___sec *sec = ctx;
	struct inode___spec *spec = ctx;

	if (bpf_core_field_exists(sec->i_ctime_sec) || bpf_core_field_exists(spec->i_ctime))
		out[0] = BPF_CORE_READ(sec, i_ctime_sec);
	return 0;
}

/* Asked after the access. */
BROKEN(too_late)
{
	struct task_struct___old *t = (void *)current();
	long state = BPF_CORE_READ(t, state);

	if (bpf_core_field_exists(t->state))
		out[0] = state;
	return 0;
}

/* A guard, and after it one more access. */
BROKEN(beyond_guard)
{
	struct task_struct___old *t = (void *)current();

	if (bpf_core_field_exists(t->state))
		out[0] = BPF_CORE_READ(t, state);
	bpf_ktime_get_ns();
	out[1] = BPF_CORE_READ(t, state);
	return 0;
}

/* The value of a variable that user space may change at any time. */
BROKEN(variable)
{
	struct nowhere *n = ctx;

	if (use_nowhere)
		out[0] = BPF_CORE_READ(n, field);
	return 0;
}

/* The answer goes through memory that the verifier does not track. */
BROKEN(forgotten)
{
	struct task_struct___old *t = (void *)current();

	out[1] = bpf_core_field_exists(t->state);
	asm volatile("" ::: "memory");
	if (out[1])
		out[0] = BPF_CORE_READ(t, state);
	return 0;
}

static __noinline u64 read_state(struct task_struct___old *t)
{
	return BPF_CORE_READ(t, state);
}

/* A subprogram called with a guard and without. */
BROKEN(second_call)
{
	struct task_struct___old *t = (void *)current();

	if (bpf_core_field_exists(t->state))
		out[0] = read_state(t);
	out[1] = read_state(t);
	return 0;
}

BROKEN(value_without_guard)
{
	out[0] = bpf_core_enum_value(enum rpm_status, RPM_BLOCKED);
	return 0;
}

BROKEN(size_without_guard)
{
	struct task_struct___nowhere *t = (void *)current();

	out[0] = bpf_core_field_size(t->no_such_field);
	return 0;
}

BROKEN(other_kind)
{
	struct task_struct___kind *t = (void *)current();
	union list_head___union *l = ctx;

	out[0] = BPF_CORE_READ(t, pid.no);
	out[1] = (u64)BPF_CORE_READ(l, next);
	return 0;
}

BROKEN(own_typedef)
{
	our_task_t *t = current();

	out[0] = BPF_CORE_READ(t, pid);
	return 0;
}

BROKEN(unknown_helper)
{
	out[0] = bpf_no_such_helper();
	return 0;
}

/* The guard asks about something else than the helper. */
BROKEN(helper_wrong_guard)
{
	if (bpf_core_type_exists(struct task_struct))
		out[0] = bpf_no_such_helper();
	return 0;
}

SEC("tracepoint/sock/inet_sock_set_state")
int signed_widened(struct trace_event_raw_inet_sock_set_state___wide *ctx)
{
	out[0] = ctx->newstate;
	return 0;
}

/* Nothing wrong. */
BROKEN(sound)
{
	out[0] = BPF_CORE_READ(current(), pid);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
