package check

import "strings"

// section is what the name of an ELF section makes of the programs in it.
type section struct {
	prefix   string
	progType string // BPF_PROG_TYPE_
	attach   string // attach type, "" where the kernel is not told one
	kind     attachKind
	optional bool // attach type may be left out by the loader if the kernel does not know it
}

// attachKind is what a program is attached to.
type attachKind uint8

const (
	attachNone    attachKind = iota // a device, socket, cgroup: nothing that BTF knows
	attachKprobe                    // any function of the kernel
	attachMulti                     // functions that match a pattern
	attachSyscall                   // the function of a system call
	attachFunc                      // a function with BTF
	attachModRet                    // fmod_ret
	attachTP                        // tracepoint/CATEGORY/NAME
	attachRawTP                     // raw_tp/NAME
	attachBTFTP                     // tp_btf/NAME
	attachLSM                       // lsm/HOOK
	attachIter                      // iter/NAME
	attachOps                       // member of a struct_ops map
	attachExt                       // freplace: a function of another program
)

// sections is libbpf's table of section names, longest prefixes first where
// one is the beginning of another.
var sections = []section{
	{"socket", "SOCKET_FILTER", "", attachNone, false},
	{"sk_reuseport/migrate", "SK_REUSEPORT", "BPF_SK_REUSEPORT_SELECT_OR_MIGRATE", attachNone, false},
	{"sk_reuseport", "SK_REUSEPORT", "BPF_SK_REUSEPORT_SELECT", attachNone, true},
	{"kprobe", "KPROBE", "", attachKprobe, false},
	{"kretprobe", "KPROBE", "", attachKprobe, false},
	{"uprobe", "KPROBE", "", attachNone, false},
	{"uprobe.s", "KPROBE", "", attachNone, false},
	{"uretprobe", "KPROBE", "", attachNone, false},
	{"uretprobe.s", "KPROBE", "", attachNone, false},
	{"kprobe.multi", "KPROBE", "BPF_TRACE_KPROBE_MULTI", attachMulti, false},
	{"kretprobe.multi", "KPROBE", "BPF_TRACE_KPROBE_MULTI", attachMulti, false},
	{"kprobe.session", "KPROBE", "BPF_TRACE_KPROBE_SESSION", attachMulti, false},
	{"uprobe.multi", "KPROBE", "BPF_TRACE_UPROBE_MULTI", attachNone, false},
	{"uretprobe.multi", "KPROBE", "BPF_TRACE_UPROBE_MULTI", attachNone, false},
	{"uprobe.session", "KPROBE", "BPF_TRACE_UPROBE_SESSION", attachNone, false},
	{"uprobe.multi.s", "KPROBE", "BPF_TRACE_UPROBE_MULTI", attachNone, false},
	{"uretprobe.multi.s", "KPROBE", "BPF_TRACE_UPROBE_MULTI", attachNone, false},
	{"uprobe.session.s", "KPROBE", "BPF_TRACE_UPROBE_SESSION", attachNone, false},
	{"ksyscall", "KPROBE", "", attachSyscall, false},
	{"kretsyscall", "KPROBE", "", attachSyscall, false},
	{"usdt", "KPROBE", "", attachNone, false},
	{"usdt.s", "KPROBE", "", attachNone, false},
	{"tcx/ingress", "SCHED_CLS", "BPF_TCX_INGRESS", attachNone, true},
	{"tcx/egress", "SCHED_CLS", "BPF_TCX_EGRESS", attachNone, true},
	{"tc", "SCHED_CLS", "", attachNone, false},
	{"classifier", "SCHED_CLS", "", attachNone, false},
	{"action", "SCHED_ACT", "", attachNone, false},
	{"netkit/primary", "SCHED_CLS", "BPF_NETKIT_PRIMARY", attachNone, true},
	{"netkit/peer", "SCHED_CLS", "BPF_NETKIT_PEER", attachNone, true},
	{"tracepoint", "TRACEPOINT", "", attachTP, false},
	{"tp", "TRACEPOINT", "", attachTP, false},
	{"raw_tracepoint", "RAW_TRACEPOINT", "", attachRawTP, false},
	{"raw_tp", "RAW_TRACEPOINT", "", attachRawTP, false},
	{"raw_tracepoint.w", "RAW_TRACEPOINT_WRITABLE", "", attachRawTP, false},
	{"raw_tp.w", "RAW_TRACEPOINT_WRITABLE", "", attachRawTP, false},
	{"tp_btf", "TRACING", "BPF_TRACE_RAW_TP", attachBTFTP, false},
	{"fentry", "TRACING", "BPF_TRACE_FENTRY", attachFunc, false},
	{"fentry.s", "TRACING", "BPF_TRACE_FENTRY", attachFunc, false},
	{"fexit", "TRACING", "BPF_TRACE_FEXIT", attachFunc, false},
	{"fexit.s", "TRACING", "BPF_TRACE_FEXIT", attachFunc, false},
	{"fsession", "TRACING", "BPF_TRACE_FSESSION", attachFunc, false},
	{"fsession.s", "TRACING", "BPF_TRACE_FSESSION", attachFunc, false},
	{"fmod_ret", "TRACING", "BPF_MODIFY_RETURN", attachModRet, false},
	{"fmod_ret.s", "TRACING", "BPF_MODIFY_RETURN", attachModRet, false},
	{"freplace", "EXT", "", attachExt, false},
	{"lsm", "LSM", "BPF_LSM_MAC", attachLSM, false},
	{"lsm.s", "LSM", "BPF_LSM_MAC", attachLSM, false},
	{"lsm_cgroup", "LSM", "BPF_LSM_CGROUP", attachLSM, false},
	{"iter", "TRACING", "BPF_TRACE_ITER", attachIter, false},
	{"iter.s", "TRACING", "BPF_TRACE_ITER", attachIter, false},
	{"syscall", "SYSCALL", "", attachNone, false},
	{"xdp.frags/devmap", "XDP", "BPF_XDP_DEVMAP", attachNone, false},
	{"xdp/devmap", "XDP", "BPF_XDP_DEVMAP", attachNone, false},
	{"xdp.frags/cpumap", "XDP", "BPF_XDP_CPUMAP", attachNone, false},
	{"xdp/cpumap", "XDP", "BPF_XDP_CPUMAP", attachNone, false},
	{"xdp.frags", "XDP", "BPF_XDP", attachNone, false},
	{"xdp", "XDP", "BPF_XDP", attachNone, true},
	{"perf_event", "PERF_EVENT", "", attachNone, false},
	{"lwt_in", "LWT_IN", "", attachNone, false},
	{"lwt_out", "LWT_OUT", "", attachNone, false},
	{"lwt_xmit", "LWT_XMIT", "", attachNone, false},
	{"lwt_seg6local", "LWT_SEG6LOCAL", "", attachNone, false},
	{"sockops", "SOCK_OPS", "BPF_CGROUP_SOCK_OPS", attachNone, true},
	{"sk_skb/stream_parser", "SK_SKB", "BPF_SK_SKB_STREAM_PARSER", attachNone, true},
	{"sk_skb/stream_verdict", "SK_SKB", "BPF_SK_SKB_STREAM_VERDICT", attachNone, true},
	{"sk_skb/verdict", "SK_SKB", "BPF_SK_SKB_VERDICT", attachNone, true},
	{"sk_skb", "SK_SKB", "", attachNone, false},
	{"sk_msg", "SK_MSG", "BPF_SK_MSG_VERDICT", attachNone, true},
	{"lirc_mode2", "LIRC_MODE2", "BPF_LIRC_MODE2", attachNone, true},
	{"flow_dissector", "FLOW_DISSECTOR", "BPF_FLOW_DISSECTOR", attachNone, true},
	{"cgroup_skb/ingress", "CGROUP_SKB", "BPF_CGROUP_INET_INGRESS", attachNone, true},
	{"cgroup_skb/egress", "CGROUP_SKB", "BPF_CGROUP_INET_EGRESS", attachNone, true},
	{"cgroup/skb", "CGROUP_SKB", "", attachNone, false},
	{"cgroup/sock_create", "CGROUP_SOCK", "BPF_CGROUP_INET_SOCK_CREATE", attachNone, false},
	{"cgroup/sock_release", "CGROUP_SOCK", "BPF_CGROUP_INET_SOCK_RELEASE", attachNone, false},
	{"cgroup/sock", "CGROUP_SOCK", "BPF_CGROUP_INET_SOCK_CREATE", attachNone, true},
	{"cgroup/post_bind4", "CGROUP_SOCK", "BPF_CGROUP_INET4_POST_BIND", attachNone, false},
	{"cgroup/post_bind6", "CGROUP_SOCK", "BPF_CGROUP_INET6_POST_BIND", attachNone, false},
	{"cgroup/bind4", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET4_BIND", attachNone, false},
	{"cgroup/bind6", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET6_BIND", attachNone, false},
	{"cgroup/connect4", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET4_CONNECT", attachNone, false},
	{"cgroup/connect6", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET6_CONNECT", attachNone, false},
	{"cgroup/connect_unix", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UNIX_CONNECT", attachNone, false},
	{"cgroup/sendmsg4", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UDP4_SENDMSG", attachNone, false},
	{"cgroup/sendmsg6", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UDP6_SENDMSG", attachNone, false},
	{"cgroup/sendmsg_unix", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UNIX_SENDMSG", attachNone, false},
	{"cgroup/recvmsg4", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UDP4_RECVMSG", attachNone, false},
	{"cgroup/recvmsg6", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UDP6_RECVMSG", attachNone, false},
	{"cgroup/recvmsg_unix", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UNIX_RECVMSG", attachNone, false},
	{"cgroup/getpeername4", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET4_GETPEERNAME", attachNone, false},
	{"cgroup/getpeername6", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET6_GETPEERNAME", attachNone, false},
	{"cgroup/getpeername_unix", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UNIX_GETPEERNAME", attachNone, false},
	{"cgroup/getsockname4", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET4_GETSOCKNAME", attachNone, false},
	{"cgroup/getsockname6", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET6_GETSOCKNAME", attachNone, false},
	{"cgroup/getsockname_unix", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UNIX_GETSOCKNAME", attachNone, false},
	{"cgroup/sysctl", "CGROUP_SYSCTL", "BPF_CGROUP_SYSCTL", attachNone, false},
	{"cgroup/getsockopt", "CGROUP_SOCKOPT", "BPF_CGROUP_GETSOCKOPT", attachNone, false},
	{"cgroup/setsockopt", "CGROUP_SOCKOPT", "BPF_CGROUP_SETSOCKOPT", attachNone, false},
	{"cgroup/dev", "CGROUP_DEVICE", "BPF_CGROUP_DEVICE", attachNone, true},
	{"struct_ops", "STRUCT_OPS", "", attachOps, false},
	{"struct_ops.s", "STRUCT_OPS", "", attachOps, false},
	{"sk_lookup", "SK_LOOKUP", "BPF_SK_LOOKUP", attachNone, false},
	{"netfilter", "NETFILTER", "BPF_NETFILTER", attachNone, false},
}

// sectionOf returns what a section name means, or nil for one that no loader
// knows. The longest prefix that ends at a slash, or at the end, counts.
func sectionOf(name string) *section {
	name = strings.TrimPrefix(name, "?")
	for p := name; p != ""; p = p[:max(0, strings.LastIndexByte(p, '/'))] {
		for i := range sections {
			if sections[i].prefix == p {
				return &sections[i]
			}
		}
	}
	return nil
}

// target returns what a section name says after its prefix.
func (s *section) target(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(name, "?"), s.prefix), "/")
}
