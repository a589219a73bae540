// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"strings"
	"sync"
)

// Section is the meaning of an ELF section's name for the programs in it.
type Section struct {
	Prefix   string
	ProgType string // name without BPF_PROG_TYPE_
	Type     string // attach type, such as BPF_XDP; "" if the kernel is given none
	Kind     AttachKind
	Optional bool // the loader may omit Type if the kernel does not know it
	Newer    bool // only libbpf knows it, since version 1.8
}

// AttachKind is the kind of thing that a program is attached to.
type AttachKind uint8

// The kinds of attachments.
const (
	AttachNone      AttachKind = iota // a device, socket, cgroup: not in BTF
	AttachKprobe                      // any function of the kernel
	AttachMulti                       // functions that match a pattern
	AttachFuncMulti                   // functions with BTF that match a pattern
	AttachSyscall                     // the function of a system call
	AttachFunc                        // a function with BTF
	AttachModRet                      // fmod_ret
	AttachTP                          // tracepoint/CATEGORY/NAME
	AttachRawTP                       // raw_tp/NAME
	AttachBTFTP                       // tp_btf/NAME
	AttachLSM                         // lsm/HOOK
	AttachIter                        // iter/NAME
	AttachOps                         // member of a struct_ops map
	AttachExt                         // freplace: a function of another program
)

// known are the section names of libbpf 1.5 and ebpf-go, in their order, several words for several alike, and then those that came with
// libbpf 1.8.
var known = [...]Section{
	{"socket", "SOCKET_FILTER", "", AttachNone, false, false},
	{"sk_reuseport/migrate", "SK_REUSEPORT", "BPF_SK_REUSEPORT_SELECT_OR_MIGRATE", AttachNone, false, false},
	{"sk_reuseport", "SK_REUSEPORT", "BPF_SK_REUSEPORT_SELECT", AttachNone, true, false},
	{"kprobe kretprobe", "KPROBE", "", AttachKprobe, false, false},
	{"uprobe uprobe.s uretprobe uretprobe.s usdt usdt.s", "KPROBE", "", AttachNone, false, false},
	{"kprobe.multi kretprobe.multi", "KPROBE", "BPF_TRACE_KPROBE_MULTI", AttachMulti, false, false},
	{"kprobe.session", "KPROBE", "BPF_TRACE_KPROBE_SESSION", AttachMulti, false, false},
	{"uprobe.multi uretprobe.multi uprobe.multi.s uretprobe.multi.s", "KPROBE", "BPF_TRACE_UPROBE_MULTI", AttachNone, false, false},
	{"uprobe.session uprobe.session.s", "KPROBE", "BPF_TRACE_UPROBE_SESSION", AttachNone, false, false},
	{"ksyscall kretsyscall", "KPROBE", "", AttachSyscall, false, false},
	{"tc/ingress", "SCHED_CLS", "BPF_TCX_INGRESS", AttachNone, true, false},
	{"tc/egress", "SCHED_CLS", "BPF_TCX_EGRESS", AttachNone, true, false},
	{"tcx/ingress", "SCHED_CLS", "BPF_TCX_INGRESS", AttachNone, true, false},
	{"tcx/egress", "SCHED_CLS", "BPF_TCX_EGRESS", AttachNone, true, false},
	{"tc classifier", "SCHED_CLS", "", AttachNone, false, false},
	{"action", "SCHED_ACT", "", AttachNone, false, false},
	{"netkit/primary", "SCHED_CLS", "BPF_NETKIT_PRIMARY", AttachNone, true, false},
	{"netkit/peer", "SCHED_CLS", "BPF_NETKIT_PEER", AttachNone, true, false},
	{"tracepoint tp", "TRACEPOINT", "", AttachTP, false, false},
	{"raw_tracepoint raw_tp", "RAW_TRACEPOINT", "", AttachRawTP, false, false},
	{"raw_tracepoint.w raw_tp.w", "RAW_TRACEPOINT_WRITABLE", "", AttachRawTP, false, false},
	{"tp_btf", "TRACING", "BPF_TRACE_RAW_TP", AttachBTFTP, false, false},
	{"fentry fentry.s", "TRACING", "BPF_TRACE_FENTRY", AttachFunc, false, false},
	{"fexit fexit.s", "TRACING", "BPF_TRACE_FEXIT", AttachFunc, false, false},
	{"fsession fsession.s", "TRACING", "BPF_TRACE_FSESSION", AttachFunc, false, false},
	{"fmod_ret fmod_ret.s", "TRACING", "BPF_MODIFY_RETURN", AttachModRet, false, false},
	{"freplace", "EXT", "", AttachExt, false, false},
	{"lsm lsm.s", "LSM", "BPF_LSM_MAC", AttachLSM, false, false},
	{"lsm_cgroup", "LSM", "BPF_LSM_CGROUP", AttachLSM, false, false},
	{"iter iter.s", "TRACING", "BPF_TRACE_ITER", AttachIter, false, false},
	{"syscall", "SYSCALL", "", AttachNone, false, false},
	{"xdp.frags/devmap xdp/devmap", "XDP", "BPF_XDP_DEVMAP", AttachNone, false, false},
	{"xdp.frags/cpumap xdp/cpumap", "XDP", "BPF_XDP_CPUMAP", AttachNone, false, false},
	{"xdp.frags", "XDP", "BPF_XDP", AttachNone, false, false},
	{"xdp", "XDP", "BPF_XDP", AttachNone, true, false},
	{"perf_event", "PERF_EVENT", "", AttachNone, false, false},
	{"lwt_in", "LWT_IN", "", AttachNone, false, false},
	{"lwt_out", "LWT_OUT", "", AttachNone, false, false},
	{"lwt_xmit", "LWT_XMIT", "", AttachNone, false, false},
	{"lwt_seg6local", "LWT_SEG6LOCAL", "", AttachNone, false, false},
	{"sockops", "SOCK_OPS", "BPF_CGROUP_SOCK_OPS", AttachNone, true, false},
	{"sk_skb/stream_parser", "SK_SKB", "BPF_SK_SKB_STREAM_PARSER", AttachNone, true, false},
	{"sk_skb/stream_verdict", "SK_SKB", "BPF_SK_SKB_STREAM_VERDICT", AttachNone, true, false},
	{"sk_skb/verdict", "SK_SKB", "BPF_SK_SKB_VERDICT", AttachNone, true, false},
	{"sk_skb", "SK_SKB", "", AttachNone, false, false},
	{"sk_msg", "SK_MSG", "BPF_SK_MSG_VERDICT", AttachNone, true, false},
	{"lirc_mode2", "LIRC_MODE2", "BPF_LIRC_MODE2", AttachNone, true, false},
	{"flow_dissector", "FLOW_DISSECTOR", "BPF_FLOW_DISSECTOR", AttachNone, true, false},
	{"cgroup_skb/ingress", "CGROUP_SKB", "BPF_CGROUP_INET_INGRESS", AttachNone, true, false},
	{"cgroup_skb/egress", "CGROUP_SKB", "BPF_CGROUP_INET_EGRESS", AttachNone, true, false},
	{"cgroup/skb", "CGROUP_SKB", "", AttachNone, false, false},
	{"cgroup/sock_create", "CGROUP_SOCK", "BPF_CGROUP_INET_SOCK_CREATE", AttachNone, false, false},
	{"cgroup/sock_release", "CGROUP_SOCK", "BPF_CGROUP_INET_SOCK_RELEASE", AttachNone, false, false},
	{"cgroup/sock", "CGROUP_SOCK", "BPF_CGROUP_INET_SOCK_CREATE", AttachNone, true, false},
	{"cgroup/post_bind4", "CGROUP_SOCK", "BPF_CGROUP_INET4_POST_BIND", AttachNone, false, false},
	{"cgroup/post_bind6", "CGROUP_SOCK", "BPF_CGROUP_INET6_POST_BIND", AttachNone, false, false},
	{"cgroup/bind4", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET4_BIND", AttachNone, false, false},
	{"cgroup/bind6", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET6_BIND", AttachNone, false, false},
	{"cgroup/connect4", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET4_CONNECT", AttachNone, false, false},
	{"cgroup/connect6", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET6_CONNECT", AttachNone, false, false},
	{"cgroup/connect_unix", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UNIX_CONNECT", AttachNone, false, false},
	{"cgroup/sendmsg4", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UDP4_SENDMSG", AttachNone, false, false},
	{"cgroup/sendmsg6", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UDP6_SENDMSG", AttachNone, false, false},
	{"cgroup/sendmsg_unix", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UNIX_SENDMSG", AttachNone, false, false},
	{"cgroup/recvmsg4", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UDP4_RECVMSG", AttachNone, false, false},
	{"cgroup/recvmsg6", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UDP6_RECVMSG", AttachNone, false, false},
	{"cgroup/recvmsg_unix", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UNIX_RECVMSG", AttachNone, false, false},
	{"cgroup/getpeername4", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET4_GETPEERNAME", AttachNone, false, false},
	{"cgroup/getpeername6", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET6_GETPEERNAME", AttachNone, false, false},
	{"cgroup/getpeername_unix", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UNIX_GETPEERNAME", AttachNone, false, false},
	{"cgroup/getsockname4", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET4_GETSOCKNAME", AttachNone, false, false},
	{"cgroup/getsockname6", "CGROUP_SOCK_ADDR", "BPF_CGROUP_INET6_GETSOCKNAME", AttachNone, false, false},
	{"cgroup/getsockname_unix", "CGROUP_SOCK_ADDR", "BPF_CGROUP_UNIX_GETSOCKNAME", AttachNone, false, false},
	{"cgroup/sysctl", "CGROUP_SYSCTL", "BPF_CGROUP_SYSCTL", AttachNone, false, false},
	{"cgroup/getsockopt", "CGROUP_SOCKOPT", "BPF_CGROUP_GETSOCKOPT", AttachNone, false, false},
	{"cgroup/setsockopt", "CGROUP_SOCKOPT", "BPF_CGROUP_SETSOCKOPT", AttachNone, false, false},
	{"cgroup/dev", "CGROUP_DEVICE", "BPF_CGROUP_DEVICE", AttachNone, true, false},
	{"struct_ops struct_ops.s", "STRUCT_OPS", "", AttachOps, false, false},
	{"sk_lookup", "SK_LOOKUP", "BPF_SK_LOOKUP", AttachNone, false, false},
	{"netfilter", "NETFILTER", "BPF_NETFILTER", AttachNone, false, false},
	{"tracepoint.s tp.s", "TRACEPOINT", "", AttachTP, false, true},
	{"raw_tracepoint.s raw_tp.s", "RAW_TRACEPOINT", "", AttachRawTP, false, true},
	{"tp_btf.s", "TRACING", "BPF_TRACE_RAW_TP", AttachBTFTP, false, true},
	{"fsession.multi fsession.multi.s", "TRACING", "BPF_TRACE_FSESSION_MULTI", AttachFuncMulti, false, true},
	{"fentry.multi fentry.multi.s", "TRACING", "BPF_TRACE_FENTRY_MULTI", AttachFuncMulti, false, true},
	{"fexit.multi fexit.multi.s", "TRACING", "BPF_TRACE_FEXIT_MULTI", AttachFuncMulti, false, true},
}

// Sections returns a row for each name. The first match is used.
var Sections = sync.OnceValue(func() (all []Section) {
	for _, s := range known {
		for prefix := range strings.FieldsSeq(s.Prefix) {
			s.Prefix = prefix
			all = append(all, s)
		}
	}
	return all
})

// SectionOf returns the meaning of a section's name, without the ? at its beginning, to ebpf-go, or to libbpf if only libbpf
// knows it; nil if it is unknown. If a name cannot include a target, ebpf-go compares its beginning only: classifier/x/y is a
// classifier, socket1 a socket filter.
func SectionOf(name string) *Section {
	first, _, _ := strings.Cut(name, "/")
	all := Sections()
	for i := range all {
		s := &all[i]
		if s.named() && first == s.Prefix || !s.named() && strings.HasPrefix(name, s.Prefix) {
			return s
		}
	}
	return nil
}

// Libbpf reports whether a name, for which [SectionOf] returned s, means the same to libbpf. Otherwise libbpf has no type for
// its programs: since version 1.0 it compares the whole name if that cannot include a target.
func (s *Section) Libbpf(name string) bool { return s.named() || name == s.Prefix }

// named reports whether a slash and a target may follow the prefix.
func (s *Section) named() bool { return s.Kind != AttachNone || s.ProgType == "KPROBE" }

// Target returns the part of a section's name after the prefix.
func (s *Section) Target(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, s.Prefix), "/")
}
