// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Enums of 32 and 64 bits, signed and unsigned, whose kind and signedness differ between the object and the
// kernel, and between kernels; flavors of enums and of enumerators.
#include "kernel.h"

/* ENUM64 here; in kernels ENUM64, or an ENUM of 8 bytes with its values cut off by an older pahole. */
enum perf_callchain_context : unsigned long long {
	PERF_CONTEXT_HV = 1ULL << 40,
	PERF_CONTEXT_KERNEL,
	PERF_CONTEXT_USER_DEFERRED, /* in 7.0, not in 6.18 */
};

/* The same in 32 bits, too few for the value. */
enum perf_callchain_context___32 { PERF_CONTEXT_USER___32 = 1, PERF_CONTEXT_MAX___32 };

/* ENUM64 in some 5.10 (it had a bit 63), ENUM in 6.1. */
enum perf_event_sample_format { PERF_SAMPLE_CALLCHAIN = 1, PERF_SAMPLE_WEIGHT_STRUCT };
enum perf_event_sample_format___64 : unsigned long long { __PERF_SAMPLE_CALLCHAIN_EARLY___64 = 1ULL << 50 };

/* ENUM64 in 6.1 alone. */
enum netdev_priv_flags { IFF_EBRIDGE = 1, IFF_MACSEC };

/* Unsigned in 5.10, signed in 6.1, where it got the value -1. */
enum rpm_status { RPM_INVALID = -7, RPM_ACTIVE, RPM_BLOCKED = 40 };

/* Signed here, unsigned in every kernel. */
enum hrtimer_restart : long long { HRTIMER_NORESTART = -(1LL << 40), HRTIMER_RESTART };

/* A value that moved in 4.19, and values that depend on the configuration. */
enum pid_type { PIDTYPE_PID = 10, PIDTYPE_TGID, PIDTYPE_PGID, PIDTYPE_SID };
enum cgroup_subsys_id___v2 { memory_cgrp_id___v2 = 100, cpuset_cgrp_id___v2 };

u64 out[16];
s64 signed_out[4];

SEC("raw_tp/sys_enter")
int wide(void *ctx)
{
	if (bpf_core_enum_value_exists(enum perf_callchain_context, PERF_CONTEXT_HV)) {
		out[0] = bpf_core_enum_value(enum perf_callchain_context, PERF_CONTEXT_HV);
		out[1] = bpf_core_enum_value(enum perf_callchain_context, PERF_CONTEXT_KERNEL);
	}
	out[2] = bpf_core_enum_value_exists(enum perf_callchain_context, PERF_CONTEXT_USER_DEFERRED);
	out[3] = bpf_core_type_size(enum perf_callchain_context);
	return 0;
}

SEC("raw_tp/sys_enter")
int mixed(void *ctx)
{
	out[0] = bpf_core_enum_value(enum perf_callchain_context___32, PERF_CONTEXT_USER___32);
	out[1] = bpf_core_enum_value(enum perf_event_sample_format, PERF_SAMPLE_CALLCHAIN);
	out[2] = bpf_core_enum_value_exists(enum perf_event_sample_format, PERF_SAMPLE_WEIGHT_STRUCT);
	out[3] = bpf_core_enum_value_exists(enum perf_event_sample_format___64, __PERF_SAMPLE_CALLCHAIN_EARLY___64);
	out[4] = bpf_core_enum_value(enum netdev_priv_flags, IFF_EBRIDGE);
	out[5] = bpf_core_type_exists(enum netdev_priv_flags);
	out[6] = bpf_core_type_size(enum netdev_priv_flags);
	out[7] = bpf_core_type_id_kernel(enum perf_event_sample_format);
	return 0;
}

SEC("raw_tp/sys_enter")
int with_sign(void *ctx)
{
	if (bpf_core_enum_value_exists(enum rpm_status, RPM_INVALID))
		signed_out[0] = (int)bpf_core_enum_value(enum rpm_status, RPM_INVALID);
	signed_out[1] = bpf_core_enum_value(enum rpm_status, RPM_ACTIVE);
	if (bpf_core_enum_value_exists(enum rpm_status, RPM_BLOCKED))
		signed_out[2] = bpf_core_enum_value(enum rpm_status, RPM_BLOCKED);
	signed_out[3] = bpf_core_enum_value(enum hrtimer_restart, HRTIMER_RESTART);
	return 0;
}

SEC("raw_tp/sys_enter")
int flavors(void *ctx)
{
	out[0] = bpf_core_enum_value(enum pid_type, PIDTYPE_SID);
	if (bpf_core_enum_value_exists(enum cgroup_subsys_id___v2, memory_cgrp_id___v2))
		out[1] = bpf_core_enum_value(enum cgroup_subsys_id___v2, memory_cgrp_id___v2);
	out[2] = bpf_core_type_matches(enum cgroup_subsys_id___v2);
	out[3] = bpf_core_type_matches(enum rpm_status);
	out[4] = bpf_core_type_matches(enum perf_callchain_context);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
