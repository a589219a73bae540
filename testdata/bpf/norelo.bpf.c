// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// No relocations at all: .BTF and .BTF.ext are there, with functions and lines only. A context that is not
// relocated, as in sources that include <linux/bpf.h>.
#include "kernel.h"

struct xdp_context {
	u32 data, data_end;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u64);
} sizes SEC(".maps");

SEC("xdp")
int count_sizes(struct xdp_context *ctx)
{
	u32 len = ctx->data_end - ctx->data, big = len > 1000;
	u64 *n = bpf_map_lookup_elem(&sizes, &big);

	if (n)
		__sync_fetch_and_add(n, len);
	return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
