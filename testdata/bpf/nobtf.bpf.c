// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Built without -g: neither .BTF nor .BTF.ext. So it has no maps, which libbpf describes in BTF.
#include "kernel.h"

SEC("socket")
int first_ttl(void *skb)
{
	u8 ttl = 0;

	return bpf_skb_load_bytes(skb, 14 + 8, &ttl, 1) ? 0 : ttl;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
