// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"

	"github.com/btfgen/btfgen/internal/testing/loadtest"
)

// TestAttach attaches programs whose target the tool chooses.
func TestAttach(t *testing.T) {
	loadtest.Kernel(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		section string
		typ     ebpf.ProgramType
		as      ebpf.AttachType
		result  int32
		want    string
	}{
		{"uprobe", ebpf.Kprobe, 0, 0, Attached},
		{"?uretprobe//bin/bash:readline", ebpf.Kprobe, 0, 0, Attached},
		{"usdt", ebpf.Kprobe, 0, 0, Attached},
		{"kprobe", ebpf.Kprobe, 0, 0, ""},
		{"perf_event", ebpf.PerfEvent, 0, 0, Attached},
		{"socket", ebpf.SocketFilter, 0, 0, Attached},
		{"sk_reuseport", ebpf.SkReuseport, ebpf.AttachSkReuseportSelect, 1, Attached},
		{"xdp", ebpf.XDP, ebpf.AttachXDP, 2, Attached},
		{"xdp/devmap", ebpf.XDP, ebpf.AttachXDPDevMap, 2, ""},
		{"sk_lookup", ebpf.SkLookup, ebpf.AttachSkLookup, 1, Attached},
	} {
		spec := &ebpf.ProgramSpec{SectionName: tt.section, Type: tt.typ, AttachType: tt.as, License: "GPL", Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R0, tt.result), asm.Return(),
		}}
		p, err := ebpf.NewProgram(spec)
		if err != nil {
			t.Errorf("%s: %v", tt.section, err)
			continue
		}
		if got := tryAttach(spec, p); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.section, got, tt.want)
		}
		p.Close()
	}
	if _, err := entryOffset(os.DevNull); err == nil {
		t.Error("an empty program has an entry point")
	}
}
