// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Reads and writes of contexts through CO-RE relocations, as programs with a vmlinux.h make them. Programs whose name ends in _fails
// access what no kernel lets programs of their type access.
#include "kernel.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct __sk_buff___core {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto, priority, ingress_ifindex, ifindex, tc_index;
	u32 cb[5];
	u32 hash, tc_classid, data, data_end, napi_id, family, remote_ip4;
} __attribute__((preserve_access_index));

SEC("tc") int length(struct __sk_buff___core *skb) { return skb->len & 1; }

SEC("tc") int marks(struct __sk_buff___core *skb)
{
	skb->mark = 1;
	return 0;
}

SEC("tc") int family_fails(struct __sk_buff___core *skb) { return skb->family & 1; }

SEC("tc") int writes_fails(struct __sk_buff___core *skb)
{
	skb->len = 1;
	return 0;
}

SEC("socket") int data_fails(struct __sk_buff___core *skb) { return skb->data & 1; }

SEC("flow_dissector") int length_fails(struct __sk_buff___core *skb) { return skb->len & 1; }

SEC("cgroup_skb/ingress") int class_fails(struct __sk_buff___core *skb) { return skb->tc_classid & 1; }
