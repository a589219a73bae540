// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

// probes are the types of programs to try on the running kernel: a section, the
// numbers of the types, and the target of attachments by BTF.
var probes = []probe{
	{"socket", ebpf.SocketFilter, 0, "", 0},
	{"kprobe", ebpf.Kprobe, 0, "", 0},
	{"uprobe.s", ebpf.Kprobe, 0, "", 0},
	{"tc", ebpf.SchedCLS, 0, "", 0},
	{"action", ebpf.SchedACT, 0, "", 0},
	{"tp", ebpf.TracePoint, 0, "", 0},
	{"xdp", ebpf.XDP, 0, "", 0},
	{"perf_event", ebpf.PerfEvent, 0, "", 0},
	{"cgroup_skb/ingress", ebpf.CGroupSKB, ebpf.AttachCGroupInetIngress, "", 0},
	{"cgroup/sock_create", ebpf.CGroupSock, ebpf.AttachCGroupInetSockCreate, "", 0},
	{"cgroup/post_bind6", ebpf.CGroupSock, ebpf.AttachCGroupInet6PostBind, "", 0},
	{"lwt_in", ebpf.LWTIn, 0, "", 0},
	{"lwt_out", ebpf.LWTOut, 0, "", 0},
	{"lwt_xmit", ebpf.LWTXmit, 0, "", 0},
	{"lwt_seg6local", ebpf.LWTSeg6Local, 0, "", 0},
	{"sockops", ebpf.SockOps, ebpf.AttachCGroupSockOps, "", 0},
	{"sk_skb", ebpf.SkSKB, 0, "", 0},
	{"cgroup/dev", ebpf.CGroupDevice, ebpf.AttachCGroupDevice, "", 0},
	{"sk_msg", ebpf.SkMsg, ebpf.AttachSkMsgVerdict, "", 0},
	{"raw_tp", ebpf.RawTracepoint, 0, "", 0},
	{"raw_tp.w", ebpf.RawTracepointWritable, 0, "", 0},
	{"cgroup/bind4", ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Bind, "", 0},
	{"cgroup/connect6", ebpf.CGroupSockAddr, ebpf.AttachCGroupInet6Connect, "", 0},
	{"cgroup/connect_unix", ebpf.CGroupSockAddr, ebpf.AttachCgroupUnixConnect, "", 0},
	{"cgroup/sendmsg4", ebpf.CGroupSockAddr, ebpf.AttachCGroupUDP4Sendmsg, "", 0},
	{"cgroup/recvmsg6", ebpf.CGroupSockAddr, ebpf.AttachCGroupUDP6Recvmsg, "", 0},
	{"cgroup/getpeername4", ebpf.CGroupSockAddr, ebpf.AttachCgroupInet4GetPeername, "", 0},
	{"cgroup/getsockname6", ebpf.CGroupSockAddr, ebpf.AttachCgroupInet6GetSockname, "", 0},
	{"sk_reuseport", ebpf.SkReuseport, ebpf.AttachSkReuseportSelect, "", 0},
	{"flow_dissector", ebpf.FlowDissector, ebpf.AttachFlowDissector, "", 0},
	{"cgroup/sysctl", ebpf.CGroupSysctl, ebpf.AttachCGroupSysctl, "", 0},
	{"cgroup/getsockopt", ebpf.CGroupSockopt, ebpf.AttachCGroupGetsockopt, "", 0},
	{"cgroup/setsockopt", ebpf.CGroupSockopt, ebpf.AttachCGroupSetsockopt, "", 0},
	{"sk_lookup", ebpf.SkLookup, ebpf.AttachSkLookup, "", 0},
	{"syscall", ebpf.Syscall, 0, "", 0},
	{"netfilter", ebpf.Netfilter, ebpf.AttachNetfilter, "", 0},
	{"tp_btf", ebpf.Tracing, ebpf.AttachTraceRawTp, "btf_trace_sched_switch", btf.KindTypedef},
	{"fentry", ebpf.Tracing, ebpf.AttachTraceFEntry, "vfs_open", btf.KindFunc},
	{"fentry.s", ebpf.Tracing, ebpf.AttachTraceFEntry, "__x64_sys_getpgid", btf.KindFunc},
	{"fexit", ebpf.Tracing, ebpf.AttachTraceFExit, "vfs_open", btf.KindFunc},
	{"fexit.s", ebpf.Tracing, ebpf.AttachTraceFExit, "__x64_sys_getpgid", btf.KindFunc},
	{"fmod_ret", ebpf.Tracing, ebpf.AttachModifyReturn, "security_file_open", btf.KindFunc},
	{"fmod_ret.s", ebpf.Tracing, ebpf.AttachModifyReturn, "security_file_open", btf.KindFunc},
	{"iter", ebpf.Tracing, ebpf.AttachTraceIter, "bpf_iter_task", btf.KindFunc},
	{"lsm", ebpf.LSM, ebpf.AttachLSMMac, "bpf_lsm_file_open", btf.KindFunc},
	{"lsm.s", ebpf.LSM, ebpf.AttachLSMMac, "bpf_lsm_file_open", btf.KindFunc},
	{"lsm_cgroup", ebpf.LSM, ebpf.AttachLSMCgroup, "bpf_lsm_socket_bind", btf.KindFunc},
	{"lsm_cgroup", ebpf.LSM, ebpf.AttachLSMCgroup, "bpf_lsm_socket_post_create", btf.KindFunc},
}

// probe is a type of programs.
type probe struct {
	section string
	kind    ebpf.ProgramType
	attach  ebpf.AttachType
	to      string
	toKind  btf.Kind
}

// TestWithdrawn checks the verdicts on a helper that newer kernels keep from a type of programs.
func TestWithdrawn(t *testing.T) {
	raceflag.SkipSerial(t)
	k := oldest(t, NewWanted(nil))
	for _, section := range []string{"sk_msg", "sk_skb/stream_parser"} {
		o := programOf(section, []insn{{Op: bpfobj.OpCall, Imm: int64(asm.FnGetLocalStorage)}, {Op: bpfobj.OpExit}})
		for _, tt := range []struct {
			to   Release
			want Status
		}{{Linux(5, 10), Fails}, {Linux(5, 4), Fails}, {Linux(4, 20), Fails}, {Linux(4, 19), MayFail}} {
			Age(k, tt.to)
			if got, l := verdictOn(t, o, k); got != tt.want {
				t.Errorf("%s on %s: %s, want %s: %v", section, tt.to, got, tt.want, l)
			}
		}
	}
}

// TestHelperTable checks that the table has the types of programs of all sections,
// except unjudged ones, and no others.
func TestHelperTable(t *testing.T) {
	used := make(map[string]bool)
	for _, row := range bpfobj.Sections() {
		section := row.Prefix
		s := bpfobj.SectionOf(section)
		name := facts.CallersName(s.ProgType, s.Type)
		used[name] = true
		if facts.ProgramType(s.ProgType) == facts.ProgramType("") {
			t.Errorf("%s: programs.txt does not have %s", section, s.ProgType)
		}
		switch s.ProgType {
		// Helpers of the first two depend on the extended program or struct. No kernel at hand has LIRC_MODE2.
		case "EXT", "STRUCT_OPS", "LIRC_MODE2":
			if name != "" {
				t.Errorf("%s is judged", section)
			}
			continue
		}
		if name == "" {
			t.Errorf("%s: nothing is known of its programs", section)
		}
	}
	for _, name := range facts.Callers() {
		if !used[name] {
			t.Errorf("no programs are of type %s", name)
		}
	}
}
