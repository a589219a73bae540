// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
/* Pointers to objects of the kernel in values of maps, with tags that changed in Linux 6.4, and in maps of types that took them later than others. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>

#define tag(name) __attribute__((btf_type_tag(name)))

struct task_struct;

struct owner {
	struct task_struct tag("kptr") *task;
};

struct old_owner {
	__u64 count;
	struct task_struct tag("kptr_ref") *task;
};

#define MAP(name, kind, struct_type)			\
	struct {					\
		__uint(type, kind);			\
		__uint(max_entries, 1);			\
		__type(key, __u32);			\
		__type(value, struct struct_type);	\
	} name SEC(".maps")

MAP(array, BPF_MAP_TYPE_ARRAY, owner);
MAP(old_array, BPF_MAP_TYPE_ARRAY, old_owner);
MAP(percpu, BPF_MAP_TYPE_PERCPU_HASH, old_owner);

extern void bpf_task_release(struct task_struct *p) __ksym __weak;

#define TAKE(name, struct_type)								\
	SEC("fentry/vfs_open") int take_##name(__u64 *ctx)				\
	{										\
		__u32 key = 0;								\
		struct struct_type *v = bpf_map_lookup_elem(&name, &key);		\
		struct task_struct *p;							\
											\
		if (!v)									\
			return 0;							\
		p = bpf_kptr_xchg(&v->task, NULL);					\
		if (p)									\
			bpf_task_release(p);						\
		return 0;								\
	}

TAKE(array, owner)
TAKE(old_array, old_owner)
TAKE(percpu, old_owner)

/* Reads through such a pointer, which is a number for older kernels. */
struct user {
	__u64 count;
	struct task_struct tag("kptr_untrusted") *task;
};

MAP(untrusted, BPF_MAP_TYPE_ARRAY, user);

int last;

#define READ(name, struct_type)								\
	SEC("fentry/vfs_open") int read_##name(__u64 *ctx)				\
	{										\
		__u32 key = 0;								\
		struct struct_type *v = bpf_map_lookup_elem(&name, &key);		\
		struct task_struct *p;							\
											\
		if (!v)									\
			return 0;							\
		p = *(struct task_struct *volatile *)&v->task;				\
		if (p)									\
			last = p->pid;							\
		return 0;								\
	}

READ(array, owner)
READ(old_array, old_owner)
READ(untrusted, user)

char LICENSE[] SEC("license") = "GPL";
