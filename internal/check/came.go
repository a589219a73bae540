// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"strings"
	"sync"
)

// came says with which release of Linux parts of the kernel's interface came, from 4.18 on, as no older kernel
// has BTF. Helpers are numbered as they came, so that the first of each release stands for all up to the next
// release's. Of the types of attachments and links there are only those that a verdict can be about. Source:
// include/uapi/linux/bpf.h of these releases; TestAppeared compares with the kernels of a corpus.
const came = `
4.18 BPF_MAP_TYPE_XSKMAP BPF_MAP_TYPE_SOCKHASH BPF_PROG_TYPE_LWT_SEG6LOCAL BPF_PROG_TYPE_LIRC_MODE2 BPF_LIRC_MODE2 BPF_CGROUP_UDP4_SENDMSG
  BPF_CGROUP_UDP6_SENDMSG bpf_xdp_adjust_tail
4.19 BPF_MAP_TYPE_CGROUP_STORAGE BPF_MAP_TYPE_REUSEPORT_SOCKARRAY BPF_PROG_TYPE_SK_REUSEPORT bpf_get_local_storage
4.20 BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE BPF_MAP_TYPE_QUEUE BPF_MAP_TYPE_STACK BPF_PROG_TYPE_FLOW_DISSECTOR BPF_FLOW_DISSECTOR
  bpf_sk_lookup_tcp
5.0 bpf_msg_pop_data
5.1 bpf_spin_lock
5.2 BPF_MAP_TYPE_SK_STORAGE BPF_PROG_TYPE_CGROUP_SYSCTL BPF_PROG_TYPE_RAW_TRACEPOINT_WRITABLE BPF_CGROUP_SYSCTL BPF_CGROUP_UDP4_RECVMSG
  BPF_CGROUP_UDP6_RECVMSG bpf_skc_lookup_tcp
5.3 BPF_PROG_TYPE_CGROUP_SOCKOPT BPF_CGROUP_GETSOCKOPT BPF_CGROUP_SETSOCKOPT bpf_send_signal
5.4 BPF_MAP_TYPE_DEVMAP_HASH bpf_tcp_gen_syncookie
5.5 BPF_PROG_TYPE_TRACING BPF_TRACE_RAW_TP BPF_TRACE_FENTRY BPF_TRACE_FEXIT bpf_skb_output
5.6 BPF_MAP_TYPE_STRUCT_OPS BPF_PROG_TYPE_STRUCT_OPS BPF_PROG_TYPE_EXT bpf_tcp_send_ack
5.7 BPF_PROG_TYPE_LSM BPF_MODIFY_RETURN BPF_LSM_MAC bpf_read_branch_records
5.8 BPF_MAP_TYPE_RINGBUF BPF_TRACE_ITER BPF_CGROUP_INET4_GETPEERNAME BPF_CGROUP_INET6_GETPEERNAME BPF_CGROUP_INET4_GETSOCKNAME
  BPF_CGROUP_INET6_GETSOCKNAME BPF_XDP_DEVMAP bpf_ktime_get_boot_ns
5.9 BPF_PROG_TYPE_SK_LOOKUP BPF_CGROUP_INET_SOCK_RELEASE BPF_XDP_CPUMAP BPF_SK_LOOKUP BPF_XDP bpf_skc_to_tcp6_sock
5.10 BPF_MAP_TYPE_INODE_STORAGE bpf_load_hdr_opt
5.11 BPF_MAP_TYPE_TASK_STORAGE bpf_task_storage_get
5.12 bpf_check_mtu
5.13 BPF_SK_SKB_VERDICT bpf_for_each_map_elem
5.14 BPF_PROG_TYPE_SYSCALL BPF_SK_REUSEPORT_SELECT BPF_SK_REUSEPORT_SELECT_OR_MIGRATE bpf_sys_bpf
5.15 BPF_LINK_TYPE_PERF_EVENT BPF_PERF_EVENT bpf_timer_init
5.16 BPF_MAP_TYPE_BLOOM_FILTER bpf_get_branch_snapshot
5.17 bpf_find_vma
5.18 BPF_LINK_TYPE_KPROBE_MULTI BPF_TRACE_KPROBE_MULTI bpf_get_retval
5.19 bpf_kptr_xchg
6.0 BPF_LSM_CGROUP bpf_tcp_raw_gen_syncookie_ipv4
6.1 BPF_MAP_TYPE_USER_RINGBUF bpf_ktime_get_tai_ns
6.2 BPF_MAP_TYPE_CGRP_STORAGE bpf_cgrp_storage_get
6.4 BPF_PROG_TYPE_NETFILTER BPF_LINK_TYPE_NETFILTER BPF_NETFILTER BPF_STRUCT_OPS
6.6 BPF_TCX_INGRESS BPF_TCX_EGRESS BPF_TRACE_UPROBE_MULTI BPF_LINK_TYPE_TCX BPF_LINK_TYPE_UPROBE_MULTI
6.7 BPF_NETKIT_PRIMARY BPF_NETKIT_PEER BPF_LINK_TYPE_NETKIT BPF_CGROUP_UNIX_CONNECT BPF_CGROUP_UNIX_SENDMSG BPF_CGROUP_UNIX_RECVMSG
  BPF_CGROUP_UNIX_GETPEERNAME BPF_CGROUP_UNIX_GETSOCKNAME
6.9 BPF_MAP_TYPE_ARENA
6.10 BPF_TRACE_KPROBE_SESSION
6.13 BPF_TRACE_UPROBE_SESSION`

// releases is came by name.
var releases = sync.OnceValue(func() map[string]release {
	m := make(map[string]release)
	last := release(0)
	for word := range strings.FieldsSeq(came) {
		var major, minor uint64
		if _, err := fmt.Sscanf(word, "%d.%d", &major, &minor); err == nil {
			last = linux(major, minor)
		} else {
			m[word] = last
		}
	}
	last = 0
	for id := int64(1); ; id++ {
		name := helperName(id)
		if name[0] == '#' {
			return m
		}
		if r, ok := m[name]; ok {
			last = r
		} else if last != 0 {
			m[name] = last
		}
	}
})
