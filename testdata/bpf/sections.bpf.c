// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Names of sections that only cilium/ebpf knows.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

SEC("socket") int plain(void *ctx)
{
	return 0;
}

SEC("xdp_sock") int sock(void *ctx)
{
	return 2;
}

SEC("socket1") int filter(void *ctx)
{
	return 0;
}

SEC("tc_ingress") int classifies(void *ctx)
{
	return 0;
}

SEC("xdp/lo") int device(void *ctx)
{
	return 2;
}

SEC("cgroup/sockops") int socket_ops(void *ctx)
{
	return 1;
}

SEC("?xdp_later") int marked(void *ctx)
{
	return 2;
}
