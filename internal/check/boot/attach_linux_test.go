// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"

	"github.com/btfgen/btfgen/internal/testing/loadtest"
)

// TestAttach attaches programs to what their sections name in the kernel.
func TestAttach(t *testing.T) {
	loadtest.Kernel(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	kprobe := Attached
	if _, err := os.Stat("/sys/kernel/tracing/kprobe_events"); err != nil {
		kprobe = "not attached: "
	}
	for _, tt := range []struct {
		section string
		typ     ebpf.ProgramType
		as      ebpf.AttachType
		to      string
		want    string
	}{
		{"?kprobe/vfs_read", ebpf.Kprobe, 0, "vfs_read", kprobe},
		{"kprobe/no_such", ebpf.Kprobe, 0, "no_such", "not attached: "},
		{"kprobe", ebpf.Kprobe, 0, "", ""},
		{"uprobe", ebpf.Kprobe, 0, "", ""},
		{"?uretprobe//bin/bash:readline", ebpf.Kprobe, 0, "/bin/bash:readline", ""},
		{"perf_event", ebpf.PerfEvent, 0, "", ""},
		{"xdp", ebpf.XDP, ebpf.AttachXDP, "", ""},
		{"raw_tp/sched_switch", ebpf.RawTracepoint, 0, "sched_switch", Attached},
	} {
		spec := &ebpf.ProgramSpec{SectionName: tt.section, Type: tt.typ, AttachType: tt.as, AttachTo: tt.to, License: "GPL", Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R0, 0), asm.Return(),
		}}
		p, err := ebpf.NewProgram(spec)
		if err != nil {
			t.Errorf("%s: %v", tt.section, err)
			continue
		}
		if got := tryAttach(spec, p); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s: %q, want %q", tt.section, got, tt.want)
		}
		p.Close()
	}
}
