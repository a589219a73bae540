// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/testing/loadtest"
)

// TestAttachedNil wants the error of an attempt that returns a nil pointer beside it, as cilium/ebpf does for iterators.
func TestAttachedNil(t *testing.T) {
	got := attached(func() (io.Closer, error) { return (*link.Iter)(nil), unix.EINVAL })
	if want := "not attached: " + unix.EINVAL.Error(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAttach attaches programs to what their sections name in the kernel or, if the tool chooses, to a substitute.
func TestAttach(t *testing.T) {
	loadtest.Kernel(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	kprobe, cgroup := Attached, Attached
	if _, err := os.Stat("/sys/kernel/tracing/kprobe_events"); err != nil {
		kprobe = "not attached: "
	}
	var fs unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &fs); err != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
		cgroup = "not attached: "
	}
	for _, tt := range []struct {
		section string
		typ     ebpf.ProgramType
		as      ebpf.AttachType
		to      string
		result  int32
		want    string
	}{
		{"?kprobe/vfs_read", ebpf.Kprobe, 0, "vfs_read", 0, kprobe},
		{"kprobe/no_such", ebpf.Kprobe, 0, "no_such", 0, "not attached: "},
		{"kprobe", ebpf.Kprobe, 0, "", 0, ""},
		{"raw_tp/sched_switch", ebpf.RawTracepoint, 0, "sched_switch", 0, Attached},
		{"raw_tp", ebpf.RawTracepoint, 0, "", 0, ""},
		{"uprobe", ebpf.Kprobe, 0, "", 0, Attached},
		{"?uretprobe//bin/bash:readline", ebpf.Kprobe, 0, "/bin/bash:readline", 0, Attached},
		{"uprobe.multi", ebpf.Kprobe, ebpf.AttachTraceUprobeMulti, "", 0, Attached},
		{"usdt", ebpf.Kprobe, 0, "", 0, Attached},
		{"perf_event", ebpf.PerfEvent, 0, "", 0, Attached},
		{"xdp", ebpf.XDP, ebpf.AttachXDP, "", 2, Attached},
		{"xdp/devmap", ebpf.XDP, ebpf.AttachXDPDevMap, "", 2, ""},
		{"tc", ebpf.SchedCLS, 0, "", 0, Attached},
		{"tc_ingress", ebpf.SchedCLS, 0, "", 0, Attached},
		{"tcx/ingress", ebpf.SchedCLS, ebpf.AttachTCXIngress, "", 0, Attached},
		{"tcx/egress", ebpf.SchedCLS, ebpf.AttachTCXEgress, "", 0, Attached},
		{"netkit/peer", ebpf.SchedCLS, ebpf.AttachNetkitPeer, "", 0, ""},
		{"socket", ebpf.SocketFilter, 0, "", 0, Attached},
		{"sk_reuseport", ebpf.SkReuseport, ebpf.AttachSkReuseportSelect, "", 1, Attached},
		{"sk_lookup", ebpf.SkLookup, ebpf.AttachSkLookup, "", 1, Attached},
		{"sk_skb", ebpf.SkSKB, 0, "", 1, Attached},
		{"sk_skb/stream_parser", ebpf.SkSKB, ebpf.AttachSkSKBStreamParser, "", 1, Attached},
		{"sk_msg", ebpf.SkMsg, ebpf.AttachSkMsgVerdict, "", 1, Attached},
		{"cgroup/skb", ebpf.CGroupSKB, 0, "", 1, cgroup},
		{"cgroup/connect4", ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect, "", 1, cgroup},
		{"sockops", ebpf.SockOps, ebpf.AttachCGroupSockOps, "", 1, cgroup},
		{"cgroup/sysctl", ebpf.CGroupSysctl, ebpf.AttachCGroupSysctl, "", 1, cgroup},
		{"cgroup/dev", ebpf.CGroupDevice, ebpf.AttachCGroupDevice, "", 1, cgroup},
		{"syscall", ebpf.Syscall, 0, "", 0, ""},
	} {
		flags := uint32(0)
		if tt.typ == ebpf.Syscall {
			flags = unix.BPF_F_SLEEPABLE
		}
		spec := &ebpf.ProgramSpec{SectionName: tt.section, Type: tt.typ, AttachType: tt.as, AttachTo: tt.to, License: "GPL", Flags: flags, Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R0, tt.result), asm.Return(),
		}}
		p, err := ebpf.NewProgram(spec)
		if err != nil {
			t.Errorf("%s: %v", tt.section, err)
			continue
		}
		if got := new(loader).tryAttach(new(object), spec, p); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: %q, want %q", tt.section, got, tt.want)
		}
		p.Close()
	}
	if _, err := entryOffset(os.DevNull); err == nil {
		t.Error("an empty program has an entry point")
	}
}
