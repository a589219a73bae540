// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestSyscallRecords checks reads of the records of system calls' events: of exits, of one with arguments and of one without.
func TestSyscallRecords(t *testing.T) {
	raceflag.SkipSerial(t)
	const fits, beyond = OK, Fails
	reads := func(off int16) []insn {
		return []insn{{Op: 0x79, Src: 1, Off: off}, {Op: 0xb7}, {Op: bpfobj.OpExit}}
	}
	for _, p := range []struct {
		section string
		off     int16
		want    Status
	}{
		{"tracepoint/syscalls/sys_exit_openat", 16, fits}, {"tracepoint/syscalls/sys_exit_openat", 24, beyond}, {"tp/syscalls/sys_exit_close", 160, beyond},
		{"tracepoint/syscalls/sys_enter_openat", 16, fits}, {"tracepoint/syscalls/sys_enter_openat", 40, fits}, {"tp/syscalls/sys_enter_close", 64, beyond},
		{"tracepoint/syscalls/sys_enter_sync", 16, beyond},
		{"tracepoint/raw_syscalls/sys_exit", 16, fits}, {"tracepoint/raw_syscalls/sys_exit", 160, beyond},
	} {
		o := programOf(p.section, reads(p.off))
		if err := o.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		e := Evaluation{Scene: sceneOn(o, oldest(t, NewWanted([]*Object{o}))), pr: &o.Programs[0]}
		e.attachment()
		e.kind = e.accesses(0)
		if got := Worst(e.onCode(t.Context())); got != p.want {
			t.Errorf("%s at %d: %s, want %s", p.section, p.off, got, p.want)
		}
	}
}

// TestContextField reads a field of 8 bytes that __sk_buff has since Linux 5.16, and the last such one before it.
func TestContextField(t *testing.T) {
	raceflag.SkipSerial(t)
	for _, tt := range []struct {
		off   int16
		since string
	}{{168, ""}, {184, "5.16"}} {
		code := []insn{{Op: bpfobj.OpExit}}
		o := programOf("tc", append([]insn{{Op: asm.LoadMemOp(asm.DWord), Src: asm.R1, Off: tt.off}, {Op: 0xb7}}, code...))
		if err := o.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := NewWanted([]*Object{o})
		testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
			k := inspectItem(t, it, want)
			e := &Evaluation{Scene: sceneOn(o, k), pr: &o.Programs[0]}
			e.attachment()
			l, status := e.accesses(0), OK
			if len(l) > 0 {
				status = l[0].f.Status
			}
			if fails := tt.since != "" && kernel.CompareVersions(it.Key.Release, tt.since) < 0; it.Key.ID == "debian" && (status == Fails) != fails {
				t.Errorf("offset %d on %s: %v", tt.off, it.Name, l)
			}
		})
	}
}

// TestContextFieldWithoutStruct reads egress_ifindex, of 5.8, where the BTF has no struct xdp_md.
func TestContextFieldWithoutStruct(t *testing.T) {
	raceflag.SkipSerial(t)
	o := programOf("xdp/devmap", []insn{{Op: asm.LoadMemOp(asm.Word), Src: asm.R1, Off: 20}, {Op: 0xb7}, {Op: bpfobj.OpExit}})
	if err := o.follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The inventory has no name that the object uses.
	k := oldest(t, NewWanted(nil))
	for _, tt := range []struct {
		to   Release
		want Status
	}{{Linux(5, 10), OK}, {Linux(5, 4), Fails}} {
		Age(k, tt.to)
		e := &Evaluation{Scene: sceneOn(o, k), pr: &o.Programs[0]}
		var got Status
		for _, a := range e.accesses(0) {
			got = max(got, a.f.Status)
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.to, got, tt.want)
		}
	}
}

// TestContextFieldOfType reads the beginning of a packet, which programs of cgroups may since Linux 4.20 and those of tc always could.
func TestContextFieldOfType(t *testing.T) {
	raceflag.SkipSerial(t)
	for _, tt := range []struct {
		section string
		to      Release
		want    Status
	}{{"cgroup_skb/ingress", Linux(4, 20), OK}, {"cgroup_skb/ingress", Linux(4, 19), Fails}, {"tc", Linux(4, 19), OK}} {
		o := programOf(tt.section, []insn{{Op: asm.LoadMemOp(asm.Word), Src: asm.R1, Off: 76}, {Op: 0xb7}, {Op: bpfobj.OpExit}})
		if err := o.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		k := oldest(t, NewWanted([]*Object{o}))
		Age(k, tt.to)
		e := &Evaluation{Scene: sceneOn(o, k), pr: &o.Programs[0]}
		e.kind = e.accesses(0)
		if got := Worst(e.onCode(t.Context())); got != tt.want {
			t.Errorf("%s on %s: %s, want %s", tt.section, tt.to, got, tt.want)
		}
	}
}

// onContext returns the finding on the access of the program to its context, if there is one.
func onContext(t *testing.T, o *Object, k *Inventory) (f Finding) {
	t.Helper()
	if err := o.follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := Evaluation{Scene: sceneOn(o, k), pr: &o.Programs[0]}
	for _, a := range e.accesses(0) {
		f = a.f
	}
	return f
}

// TestFieldAccess accesses bytes of the context that no kernel lets programs of a type access, and others.
func TestFieldAccess(t *testing.T) {
	write := func(size asm.Size, off int16) []insn {
		return ending(insn{Op: 0xb7, Dst: 2}, insn{Op: asm.StoreMemOp(size), Dst: 1, Src: 2, Off: off})
	}
	read := func(size asm.Size, off int16) []insn { return ending(insn{Op: asm.LoadMemOp(size), Src: 1, Off: off}) }
	for _, tt := range []struct {
		section string
		code    []insn
		release Release
		want    Status
		because Code
	}{
		{"tc", write(asm.Word, 8), Linux(6, 12), OK, ""},                                    // mark
		{"tc", write(asm.Word, 0), Linux(6, 12), Fails, ContextWrite},                       // len
		{"tc", write(asm.Word, 0), Linux(4, 13), OK, ""},                                    // not known
		{"tc", write(asm.Word, 0), Linux(7, 2), MayFail, ContextWrite},                      // not known yet
		{"xdp", write(asm.Word, 0), Linux(6, 12), Fails, ContextWrite},                      // data
		{"xdp", write(asm.Word, 16), Linux(6, 12), OK, ""},                                  // rx_queue_index
		{"xdp", read(asm.DWord, 0), Linux(6, 12), Fails, ContextPart},                       // data and data_end
		{"xdp/devmap", read(asm.Word, 20), Linux(6, 12), OK, ""},                            // egress_ifindex
		{"xdp", read(asm.Word, 20), Linux(6, 12), Fails, ContextForbidden},                  // egress_ifindex
		{"socket", read(asm.Word, 76), Linux(6, 12), Fails, ContextForbidden},               // data
		{"socket", read(asm.Byte, 1), Linux(6, 12), OK, ""},                                 // len
		{"flow_dissector", read(asm.Word, 0), Linux(6, 12), Fails, ContextForbidden},        // len
		{"flow_dissector", read(asm.Word, 0), Linux(5, 1), MayFail, ContextForbidden},       // len
		{"cgroup/connect4", read(asm.Word, 8), Linux(6, 12), Fails, ContextForbidden},       // user_ip6
		{"cgroup/connect6", write(asm.Word, 8), Linux(6, 12), OK, ""},                       // user_ip6
		{"cgroup/getsockopt", write(asm.Word, 24), Linux(6, 12), Fails, ContextWrite},       // level
		{"cgroup/setsockopt", write(asm.Word, 24), Linux(6, 12), OK, ""},                    // level
		{"cgroup/post_bind4", write(asm.Word, 16), Linux(6, 12), Fails, ContextWrite},       // mark
		{"cgroup/sock_create", write(asm.Word, 16), Linux(6, 12), OK, ""},                   // mark
		{"perf_event", read(asm.Word, 8), Linux(6, 12), Fails, ContextPart},                 // a register
		{"sk_skb/stream_verdict", read(asm.Word, 8), Linux(6, 12), Fails, ContextForbidden}, // mark
		{"tc", write(asm.Word, 12), Linux(5, 2), OK, ""},                                    // queue_mapping
		{"tc", write(asm.Word, 12), Linux(4, 19), MayFail, ContextForbidden},                // queue_mapping
		{"tc", read(asm.Byte, 1), Linux(5, 0), OK, ""},                                      // len
		{"tc", read(asm.Byte, 1), Linux(4, 18), MayFail, ContextForbidden},                  // len
		{"tc", read(asm.Byte, 49), Linux(4, 18), OK, ""},                                    // cb
		{"tc", read(asm.Word, 164), Linux(4, 18), MayFail, ContextBeyond},                   // gso_segs
		{"cgroup_skb/egress", write(asm.Word, 8), Linux(4, 19), MayFail, ContextForbidden},  // mark
		{"cgroup_skb/egress", write(asm.Word, 8), Linux(4, 20), OK, ""},                     // mark
		{"cgroup/connect6", write(asm.DWord, 8), Linux(5, 2), MayFail, ContextForbidden},    // user_ip6
		{"cgroup/connect6", write(asm.DWord, 8), Linux(5, 3), OK, ""},                       // user_ip6
		{"cgroup/bind4", read(asm.Half, 24), Linux(5, 7), MayFail, ContextForbidden},        // user_port
		{"sockops", read(asm.DWord, 184), Linux(5, 2), MayFail, ContextBeyond},              // sk
		{"sockops", read(asm.DWord, 184), Linux(5, 3), OK, ""},                              // sk
		{"sockops", read(asm.DWord, 216), Linux(6, 1), MayFail, ContextBeyond},              // skb_hwtstamp
		{"sk_lookup", read(asm.Word, 64), Linux(5, 15), MayFail, ContextBeyond},             // ingress_ifindex
		{"socket", read(asm.Byte, 169), Linux(6, 12), MayFail, ContextForbidden},            // a byte of sk
		{"socket", read(asm.Byte, 169), Linux(6, 17), Fails, ContextForbidden},              // a byte of sk
	} {
		o := programOf(tt.section, tt.code)
		f := onContext(t, o, released(uint64(tt.release), "x86_64"))
		if f.Status != tt.want || f.Code != tt.because {
			t.Errorf("%s on %s: %s %s, want %s %s", tt.section, tt.release, f.Status, f.Code, tt.want, tt.because)
		}
	}
}

// TestStructOpsArguments reads arguments of a function of a struct_ops: bpf_tcp_ca has members with one, two and three of them.
func TestStructOpsArguments(t *testing.T) {
	raceflag.SkipSerial(t)
	for _, tt := range []struct {
		member string
		off    int16
		want   Status
	}{
		{"ssthresh", 0, OK}, {"ssthresh", 8, Fails}, {"cong_control", 8, OK}, {"cong_control", 16, Fails}, {"cong_avoid", 16, OK}, {"cong_avoid", 24, Fails},
		{"no_such_member", 24, OK},
	} {
		o := programOf("struct_ops/"+tt.member, []insn{{Op: asm.LoadMemOp(asm.DWord), Src: asm.R1, Off: tt.off}, {Op: 0xb7}, {Op: bpfobj.OpExit}})
		o.StructOps = []bpfobj.StructOpsMap{{Name: "ops", Type: "tcp_congestion_ops", Members: []string{"name", tt.member}, Funcs: []int{-1, 0}}}
		f := onContext(t, o, oldest(t, NewWanted([]*Object{o})))
		if f.Status != tt.want || tt.want == Fails && (f.Code != ContextNoArgument || f.Name != "tcp_congestion_ops."+tt.member) {
			t.Errorf("%s at %d: %+v, want %s", tt.member, tt.off, f, tt.want)
		}
	}
}

// TestAccessesOfUnknown wants no panic, and nothing judged, where the type of the program is not known.
func TestAccessesOfUnknown(t *testing.T) {
	for _, section := range []string{"custom", "freplace/f"} {
		o := programOf(section, ending(insn{Op: bpfobj.OpCall, Imm: int64(asm.FnGetCurrentTaskBtf)}, insn{Op: 0x79, Dst: 3}, insn{Op: asm.StoreMemOp(asm.Word), Dst: 1, Src: 2, Off: 8}))
		if err := o.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, f := range sceneOn(o, released(uint64(Linux(6, 12)), "x86_64")).evaluate(0).onCode(t.Context()) {
			if FamilyOf(f.Code) == FamilyContext {
				t.Errorf("%s: %+v", section, f)
			}
		}
	}
}

// TestRegistersOfEvents reads the sample_period of a perf event, which comes after the registers of the machine.
func TestRegistersOfEvents(t *testing.T) {
	for _, tt := range []struct {
		arch string
		off  int16
		want Status
	}{{"x86_64", 168, OK}, {"x86_64", 184, Fails}, {"arm64", 272, OK}, {"s390x", 144, OK}} {
		o := programOf("perf_event", ending(insn{Op: asm.LoadMemOp(asm.DWord), Src: 1, Off: tt.off}))
		f := onContext(t, o, released(uint64(Linux(6, 12)), tt.arch))
		if f.Status != tt.want {
			t.Errorf("%s at %d: %+v, want %s", tt.arch, tt.off, f, tt.want)
		}
	}
}

// TestStructOpsContext accesses the arguments of a function of a struct_ops as no kernel lets programs do.
func TestStructOpsContext(t *testing.T) {
	raceflag.SkipSerial(t)
	for _, tt := range []struct {
		access  insn
		want    Status
		because Code
	}{
		{insn{Op: asm.LoadMemOp(asm.Word), Dst: 2, Src: 1, Off: 8}, OK, ""},
		{insn{Op: asm.LoadMemOp(asm.Word), Dst: 2, Src: 1, Off: 12}, Fails, ContextPart},
		{insn{Op: asm.StoreImmOp(asm.DWord), Dst: 1, Off: 8}, Fails, ContextWrite},
		{insn{Op: asm.LoadMemOp(asm.DWord), Dst: 2, Src: 1, Off: 96}, Fails, ContextOutside},
	} {
		o := programOf("struct_ops/cong_avoid", ending(tt.access))
		o.StructOps = []bpfobj.StructOpsMap{{Name: "ops", Type: "tcp_congestion_ops", Members: []string{"cong_avoid"}, Funcs: []int{0}}}
		f := onContext(t, o, oldest(t, NewWanted([]*Object{o})))
		if f.Status != tt.want || f.Code != tt.because {
			t.Errorf("%+v: %+v, want %s %s", tt.access, f, tt.want, tt.because)
		}
	}
}

// TestStructOpsNull accesses the task that dispatch of a sched_ext_ops is given, which may be null, and that enqueue is given, which is not.
func TestStructOpsNull(t *testing.T) {
	raceflag.SkipSerial(t)
	load := insn{Op: asm.LoadMemOp(asm.DWord), Dst: 3, Src: 1, Off: 8}
	read, write := insn{Op: asm.LoadMemOp(asm.Word), Dst: 2, Src: 3, Off: 64}, insn{Op: asm.StoreImmOp(asm.DWord), Dst: 3}
	test := []insn{{Op: 0x55, Dst: 3, Off: 2}, {Op: 0xb7}, {Op: bpfobj.OpExit}}
	first := load
	first.Off = 0
	tried := 0
	for _, tt := range []struct {
		member string
		code   []insn
		want   Code
	}{
		{"dispatch", []insn{load, read}, ContextNull},
		{"dispatch", slices.Concat([]insn{load}, test, []insn{read}), ""},
		{"dispatch", []insn{load, write}, ContextNull},
		{"dispatch", slices.Concat([]insn{load}, test, []insn{write}), ContextWrite},
		{"enqueue", []insn{first, read}, ""},
	} {
		o := programOf("struct_ops/"+tt.member, ending(tt.code...))
		o.StructOps = []bpfobj.StructOpsMap{{Name: "ops", Type: "sched_ext_ops", Members: []string{tt.member}, Funcs: []int{0}}}
		want := NewWanted([]*Object{o})
		testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
			k := inspectItem(t, it, want)
			if _, ok := k.find("sched_ext_ops", btf.KindStruct); !ok || !k.atLeast(Linux(6, 14)) {
				return
			}
			tried++
			if f := onContext(t, o, k); f.Code != tt.want {
				t.Errorf("%s: %v on %s: %+v, want %q", tt.member, tt.code, it.Name, f, tt.want)
			}
		})
	}
	if tried < 5 {
		t.Errorf("%d tried", tried)
	}
}

// TestStructOpsWrites writes through an argument of a function of a struct_ops, a pointer to struct sock, which leads to struct tcp_sock, and through
// the result of a helper.
func TestStructOpsWrites(t *testing.T) {
	raceflag.SkipSerial(t)
	ops := func(code ...insn) *Object {
		o := programOf("struct_ops/ssthresh", ending(code...))
		o.StructOps = []bpfobj.StructOpsMap{{Name: "ops", Type: "tcp_congestion_ops", Members: []string{"name", "ssthresh"}, Funcs: []int{-1, 0}}}
		return o
	}
	task := []insn{{Op: bpfobj.OpCall, Imm: int64(asm.FnGetCurrentTaskBtf)}, {Op: asm.StoreImmOp(asm.Word), Off: 64}}
	first := ops(task...)
	if err := first.follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	k := oldest(t, NewWanted([]*Object{first})) // Linux 5.10
	at := func(of string, names ...string) int16 {
		y, ok := k.find(of, btf.KindStruct)
		if !ok {
			t.Fatalf("no struct %s", of)
		}
		off, _, ok := place(y.typ(), names)
		if !ok {
			t.Fatalf("no %v in struct %s", names, of)
		}
		return int16(off)
	}
	store := func(size asm.Size, off int16) []insn {
		return []insn{{Op: asm.LoadMemOp(asm.DWord), Dst: 1, Src: 1}, {Op: asm.StoreImmOp(size), Dst: 1, Off: off}}
	}
	window, own := at("tcp_sock", "snd_cwnd"), at("inet_connection_sock", "icsk_ca_priv")
	for _, tt := range []struct {
		name string
		code []insn
		want Status
	}{
		{"a member", store(asm.Word, window), OK},
		{"the beginning of a member", store(asm.Half, window), OK},
		{"the end of a member", store(asm.Half, window+2), Fails},
		{"more than a member", store(asm.DWord, window), Fails},
		{"an outer member", store(asm.Byte, at("inet_connection_sock", "icsk_ack", "pending")), OK},
		{"bytes within", store(asm.Word, own+12), OK},
		{"bytes before", store(asm.Word, own-4), Fails},
		{"a member of Linux 6.0", store(asm.DWord, at("sock", "sk_pacing_rate")), MayFail},
		{"a member of Linux 6.4", store(asm.Word, at("tcp_sock", "app_limited")), MayFail},
		{"another member", store(asm.Word, at("tcp_sock", "srtt_us")), Fails},
		{"an atomic addition", []insn{{Op: asm.LoadMemOp(asm.DWord), Dst: 1, Src: 1}, {Op: asm.StoreXAddOp(asm.Word), Dst: 1, Src: 2, Off: window}}, OK},
		{"another struct", task, Fails},
		{"a read", []insn{{Op: asm.LoadMemOp(asm.DWord), Dst: 1, Src: 1}, {Op: asm.LoadMemOp(asm.Half), Dst: 1, Src: 1, Off: window + 2}}, OK},
	} {
		f := onContext(t, ops(tt.code...), k)
		if f.Status != tt.want || tt.want != OK && f.Code != ContextWrite {
			t.Errorf("%s: %+v, want %s", tt.name, f, tt.want)
		}
	}
}
