// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A type of maps since Linux 6.1.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, 31); /* BPF_MAP_TYPE_USER_RINGBUF */
	__uint(max_entries, 4096);
} ring SEC(".maps");

static long taken(void *dynptr, void *ctx) { return 0; }

SEC("raw_tp/sys_enter") int drains(void *ctx)
{
	bpf_user_ringbuf_drain(&ring, taken, NULL, 0);
	return 0;
}
