// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A setting that no kernel has and that libbpf loads nothing without.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern bool CONFIG_NO_SUCH_SETTING __kconfig;

SEC("raw_tp/sched_switch") int needs_setting(void *ctx)
{
	return CONFIG_NO_SUCH_SETTING;
}
