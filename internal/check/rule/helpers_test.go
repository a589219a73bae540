// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// probes are the types of programs that the running kernel is asked about: a
// section, the numbers of the types, and for those that are attached by BTF to what.
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

// unprobed are what the kernels that were asked lack, or what depends on their
// configuration or on rights that tests do not have.
var unprobed = map[string]bool{
	"bpf_override_return": true, "bpf_probe_write_user": true,
	"bpf_skb_pull_data": true,                         // lwt_seg6local may call it in 6.18, not in 7.2
	"bpf_setsockopt":    true, "bpf_getsockopt": true, // some hooks of lsm_cgroup, and some of cgroup/sock
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
		}{{Linux(5, 10), Fails}, {Linux(5, 4), Fails}, {Linux(4, 20), MayFail}, {Linux(4, 19), MayFail}} {
			Age(k, tt.to)
			if got, l := verdictOn(t, o, k); got != tt.want {
				t.Errorf("%s on %s: %s, want %s: %v", section, tt.to, got, tt.want, l)
			}
		}
	}
}

// TestVerifierHelpers asks the running kernel, of each type of programs, which
// helpers they may call. None that it lets them call may count as forbidden.
// With -v the answers are logged: helpers.txt is made of them.
func TestVerifierHelpers(t *testing.T) {
	k := datedKernel(t)
	types := 0
	for _, p := range probes {
		s, l := p.loader(t, k)
		if l == nil {
			continue
		}
		types++
		var allowed []int64
		for id := int64(1); id <= lastHelper; id++ {
			if !k.helpers[id] {
				continue
			}
			log, err := l.load(helperCall(id))
			if errors.Is(err, unix.EPERM) {
				t.Fatal(p.section, err)
			}
			why := k.forbidden(s, id)
			status := why.Status
			forbids := strings.Contains(log, "unknown func ") || strings.Contains(log, "cannot use helper") || strings.Contains(log, "sleep")
			if !forbids {
				allowed = append(allowed, id)
			}
			switch {
			case !forbids && status == Fails:
				t.Errorf("%s: %s is allowed, but %s", p.section, helperName(id), why.Code)
			case forbids && status == OK && !unprobed[helperName(id)]:
				t.Errorf("%s: %s is not allowed: %s", p.section, helperName(id), cmp.Or(log, fmt.Sprint(err)))
			}
		}
		t.Logf("%s: %s: may call%s", p.section, p.to, ranges(allowed))
	}
	if types < 20 {
		t.Errorf("%d types", types)
	}
}

// ranges writes ascending numbers.
func ranges(l []int64) string {
	var b strings.Builder
	for i := 0; i < len(l); {
		j := i
		for j+1 < len(l) && l[j+1] == l[j]+1 {
			j++
		}
		fmt.Fprintf(&b, " %d", l[i])
		if j > i {
			fmt.Fprintf(&b, "-%d", l[j])
		}
		i = j + 1
	}
	return b.String()
}

// probe is a type of programs.
type probe struct {
	section string
	kind    ebpf.ProgramType
	attach  ebpf.AttachType
	to      string
	toKind  btf.Kind
}

// loader returns what loads programs of the type, and their section; nil if the kernel has none, or they cannot be
// loaded here.
func (p *probe) loader(t *testing.T, k *Inventory) (*bpfobj.Section, *loader) {
	s := bpfobj.SectionOf(p.section)
	if s == nil || k.lacks(enumProg, "BPF_PROG_TYPE_"+s.ProgType) {
		return nil, nil
	}
	l := &loader{kind: uint32(p.kind), attach: uint32(p.attach)}
	if maySleep(s) {
		l.flags = unix.BPF_F_SLEEPABLE
	}
	if p.to != "" {
		y, ok := k.find(p.to, p.toKind)
		if !ok {
			return nil, nil
		}
		l.btfID = uint32(y.id)
	}
	if _, err := l.load(insn{Op: 0xb7}); err != nil {
		l.result = 1 // what some types of attachment want
		if _, err := l.load(insn{Op: 0xb7}); err != nil {
			t.Logf("%s: %s: not probed: %v", p.section, p.to, err)
			return nil, nil
		}
	}
	return s, l
}

// datedKernel is runningKernel with the version of its release.
func datedKernel(t *testing.T) *Inventory {
	t.Helper()
	k := runningKernel(t)
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	k.version = VersionOf(kernel.Key{Release: unix.ByteSliceToString(u.Release[:])})
	return k
}

// loader loads programs of one type.
type loader struct {
	kind, attach, flags, btfID uint32
	result                     int64
}

// load loads a program of one instruction, and returns the verifier's log.
func (l *loader) load(in insn) (string, error) {
	var code []byte
	for _, in := range []insn{in, {Op: 0xb7, Imm: l.result}, {Op: bpfobj.OpExit}} {
		code = append(code, byte(in.Op), byte(in.Dst|in.Src<<4), 0, 0)
		code = binary.LittleEndian.AppendUint32(code, uint32(in.Imm))
	}
	license, log := []byte("GPL\x00"), make([]byte, 1<<14)
	attr := struct {
		kind, insns       uint32
		code, license     uint64
		logLevel, logSize uint32
		log               uint64
		version, flags    uint32
		name              [16]byte
		ifindex, attach   uint32
		btf, funcSize     uint32
		funcs             uint64
		numFuncs          uint32
		lineSize          uint32
		lines             uint64
		numLines, btfID   uint32
	}{
		kind: l.kind, insns: uint32(len(code) / 8), code: address(code), license: address(license),
		logLevel: 1, logSize: uint32(len(log)), log: address(log), flags: l.flags, attach: l.attach, btfID: l.btfID,
	}
	fd, errno := uintptr(0), unix.EAGAIN
	for errno == unix.EAGAIN { // the verifier stops for signals, which Go's scheduler sends
		clear(log)
		fd, _, errno = unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	}
	runtime.KeepAlive([][]byte{code, license, log})
	text, _, _ := bytes.Cut(log, []byte{0})
	if errno != 0 {
		return string(text), errno
	}
	return string(text), unix.Close(int(fd))
}

func address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&b[0]))) }

// TestHelperTable wants no type in the table that no section has, and programs of
// every section in it, except those that are not judged.
func TestHelperTable(t *testing.T) {
	p, err := readPermissions(helperText)
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[string]bool)
	for _, row := range bpfobj.Sections() {
		section := row.Prefix
		s := bpfobj.SectionOf(section)
		of, name := p.of(s)
		used[name] = true
		switch s.ProgType {
		case "EXT", "STRUCT_OPS", "LIRC_MODE2": // what they extend decides; no kernel at hand has the last
			if of != nil {
				t.Errorf("%s is judged", section)
			}
			continue
		}
		switch s.Type {
		case "BPF_TRACE_FSESSION": // newer than the kernels at hand
			if of != nil {
				t.Errorf("%s is judged", section)
			}
		default:
			if of == nil {
				t.Errorf("%s: nothing is known of %s", section, name)
			}
		}
	}
	for name := range p {
		if strings.ToUpper(name) == name && !used[name] {
			t.Errorf("no programs are of type %s", name)
		}
	}
	for _, bad := range []string{"a", "A: no_such_helper", "A: +b", "A: loop@5", "A: loop\nA: loop", "late A: loop"} {
		if p, err := readPermissions(bad); err == nil {
			t.Errorf("%q: %v", bad, p)
		}
	}
}
