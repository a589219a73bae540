// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Each of the 13 kinds of relocation by itself, once with an answer and, where a kernel may have none, once
// without. All programs share one section, so that all but the first start at an offset.
#include "kernel.h"

enum hrtimer_restart {
	HRTIMER_NORESTART = 40,
	HRTIMER_RESTART,
	HRTIMER_NO_SUCH = 99,
};

enum no_such_enum { NO_SUCH_VALUE = 7 };

typedef struct list_head local_list;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct no_such_struct {
	int a;
	int b : 3;
};

struct path___swapped {
	struct dentry *mnt;
};

struct task_struct___absent {
	int no_such_field;
	int no_such_bits : 3;
};

#pragma clang attribute pop

u64 out;

#define field(type, member, info) __builtin_preserve_field_info(((type *)0)->member, BPF_FIELD_##info)
#define PROG(name, value)         \
	SEC("raw_tp/sys_enter")   \
	int name(void *ctx)       \
	{                         \
		out = (value);    \
		return 0;         \
	}

PROG(byte_off, field(struct task_struct, comm, BYTE_OFFSET))
PROG(byte_sz, field(struct task_struct, comm, BYTE_SIZE))
PROG(field_exists, field(struct task_struct, comm, EXISTS))
PROG(sign, field(struct task_struct, exit_code, SIGNED))
PROG(lshift_u64, field(struct task_struct, in_iowait, LSHIFT_U64))
PROG(rshift_u64, field(struct task_struct, in_iowait, RSHIFT_U64))
PROG(local_type_id, bpf_core_type_id_local(local_list))
PROG(target_type_id, bpf_core_type_id_kernel(struct list_head))
PROG(type_exists, bpf_core_type_exists(struct hlist_node))
PROG(type_matches, bpf_core_type_matches(struct path))
PROG(type_size, bpf_core_type_size(struct dentry))
PROG(enumval_exists, bpf_core_enum_value_exists(enum hrtimer_restart, HRTIMER_RESTART))
PROG(enumval_value, bpf_core_enum_value(enum hrtimer_restart, HRTIMER_RESTART))

/* Questions with the answer no, and sizes and IDs that are 0 where there is nothing. */
PROG(no_field, field(struct task_struct___absent, no_such_field, EXISTS))
PROG(no_struct_field, field(struct no_such_struct, a, EXISTS))
PROG(no_type, bpf_core_type_exists(struct no_such_struct))
PROG(no_match, bpf_core_type_matches(struct path___swapped))
PROG(no_size, bpf_core_type_size(struct no_such_struct))
PROG(no_type_id, bpf_core_type_id_kernel(struct no_such_struct))
PROG(no_enum, bpf_core_enum_value_exists(enum no_such_enum, NO_SUCH_VALUE))
PROG(no_enumval, bpf_core_enum_value_exists(enum hrtimer_restart, HRTIMER_NO_SUCH))
PROG(no_local_id, bpf_core_type_id_local(struct no_such_struct))

/* What poisons, behind a question that keeps it from running. */
PROG(poison_off, bpf_core_type_exists(struct no_such_struct) ? field(struct no_such_struct, a, BYTE_OFFSET) : 0)
PROG(poison_sz, bpf_core_type_exists(struct no_such_struct) ? field(struct no_such_struct, a, BYTE_SIZE) : 0)
PROG(poison_sign, bpf_core_type_exists(struct no_such_struct) ? field(struct no_such_struct, b, SIGNED) : 0)
PROG(poison_lshift, bpf_core_type_exists(struct no_such_struct) ? field(struct no_such_struct, b, LSHIFT_U64) : 0)
PROG(poison_rshift, bpf_core_type_exists(struct no_such_struct) ? field(struct no_such_struct, b, RSHIFT_U64) : 0)
PROG(poison_bits, field(struct task_struct___absent, no_such_bits, EXISTS)
			  ? field(struct task_struct___absent, no_such_bits, BYTE_OFFSET)
			  : 0)
PROG(poison_enumval, bpf_core_enum_value_exists(enum hrtimer_restart, HRTIMER_NO_SUCH)
			     ? bpf_core_enum_value(enum hrtimer_restart, HRTIMER_NO_SUCH)
			     : 0)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
