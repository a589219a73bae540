// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"math"
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/check/interp"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
)

// TestOldReturns checks the verdicts on values that programs of cgroups could not return at first.
func TestOldReturns(t *testing.T) {
	raceflag.SkipSerial(t)
	never := Linux(9, 0)
	k := oldest(t, NewWanted(nil))
	for _, to := range []Release{Linux(5, 12), Linux(5, 10), Linux(5, 3), Linux(5, 2), Linux(4, 19)} {
		Age(k, to)
		for _, tt := range []struct {
			section string
			value   int64
			since   Release // 0 if all kernels take the value
		}{
			{"cgroup_skb/egress", 1, 0}, {"cgroup_skb/egress", 3, Linux(5, 3)}, {"cgroup_skb/egress", 4, never}, {"cgroup_skb/egress", -1, never},
			{"cgroup_skb/ingress", 3, never}, {"cgroup/bind4", 2, Linux(5, 12)}, {"cgroup/bind6", 3, Linux(5, 12)}, {"cgroup/bind6", 4, never},
			{"cgroup/connect4", 2, never}, {"xdp", 9, 0},
		} {
			want := OK
			if to < tt.since {
				want = MayFail // no witness in BTF
				if tt.section == "cgroup_skb/egress" || tt.since == never {
					want = Fails
				}
			}
			o := programOf(tt.section, []insn{{Op: 0xb7, Imm: tt.value}, {Op: 0x95}})
			if got, l := verdictOn(t, o, k); got != want {
				t.Errorf("%s that returns %d on %s: %s, want %s: %v", tt.section, tt.value, to, got, want, l)
			}
		}
	}
}

// TestSleepingTracing checks the verdicts on programs of tracepoints that may sleep: 5.10 loads those with BTF at any tracepoint.
func TestSleepingTracing(t *testing.T) {
	raceflag.SkipSerial(t)
	k := oldest(t, NewWanted(nil))
	for section, want := range map[string]Status{"tp_btf.s": MayFail, "raw_tp.s": Fails, "tp.s": Fails, "tp_btf": OK} {
		o := programOf(section, []insn{{Op: 0xb7}, {Op: 0x95}})
		_, l := verdictOn(t, o, k)
		l = slices.DeleteFunc(l, func(f Finding) bool { return f.Code == SectionNewer })
		if got := Worst(l); got != want {
			t.Errorf("%s: %s, want %s: %v", section, got, want, l)
		}
	}
}

// TestRealTime checks the verdicts on timers of kernels with PREEMPT_RT.
func TestRealTime(t *testing.T) {
	k := &Inventory{Arch: "x86_64", want: new(Wanted), known: knowledge{config: map[string]string{settingRealTime: "y"}}}
	for _, tt := range []struct {
		release uint64
		helper  asm.BuiltinFunc
		want    Status
	}{
		{uint64(Linux(6, 17)), asm.FnTimerInit, Fails}, {uint64(Linux(6, 18)), asm.FnTimerCancel, Fails}, {uint64(Linux(6, 12)), asm.FnTimerStart, MayFail},
		{uint64(Linux(6, 18)), asm.FnKtimeGetNs, OK},
	} {
		k.version = interp.Number{V: tt.release}
		k.settle()
		if got := k.realTime(int64(tt.helper)); got.Status != tt.want {
			t.Errorf("%s on %#x: %v, want %s", tt.helper, tt.release, got, tt.want)
		}
	}
	k.known.config = nil
	if got := k.realTime(int64(asm.FnTimerInit)); got.Status != OK {
		t.Errorf("without a configuration: %v", got)
	}
}

// TestNumbersInContexts checks the verdicts on instructions that store a number, or a register, in the context.
func TestNumbersInContexts(t *testing.T) {
	raceflag.SkipSerial(t)
	k := oldest(t, NewWanted(nil))
	for op, want := range map[asm.OpCode]Status{0x62: MayFail, 0x63: OK} {
		const mark = 8
		o := programOf("tc", []insn{{Op: 0xb7}, {Op: op, Dst: 1, Off: mark}, {Op: 0x95}})
		if err := o.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		p := scenesOn(o, k).merged(0, func(s *Scene) *Evaluation {
			e := &Evaluation{Scene: s, pr: &o.Programs[0]}
			e.kind = e.accesses(0)
			return e
		})
		if l := p.onCode(t.Context()); Worst(l) != want {
			t.Errorf("%#x: %v, want %s", op, l, want)
		}
	}
}

// TestReturnValues checks which values each type of programs may return, as check_return_code in kernel/bpf/verifier.c of Linux 6.12.117 has them.
func TestReturnValues(t *testing.T) {
	raceflag.SkipSerial(t)
	k := &Inventory{Arch: "x86_64", want: new(Wanted), version: interp.Number{V: uint64(Linux(6, 13))}}
	k.settle()
	one, yes, four, any := extent{1, 1}, extent{0, 1}, extent{0, 3}, extent{-100, 100}
	for section, want := range map[string]extent{
		"cgroup_skb/ingress": yes, "cgroup_skb/egress": four, "cgroup/skb": yes, "cgroup/sock_create": yes, "cgroup/sock_release": yes, "cgroup/post_bind6": yes,
		"cgroup/bind4": four, "cgroup/bind6": four, "cgroup/connect6": yes, "cgroup/connect_unix": yes, "cgroup/sendmsg4": yes, "cgroup/sendmsg_unix": yes,
		"cgroup/recvmsg4": one, "cgroup/recvmsg6": one, "cgroup/recvmsg_unix": one, "cgroup/getpeername4": one, "cgroup/getsockname6": one,
		"cgroup/getpeername_unix": one, "cgroup/getsockname_unix": one, "cgroup/dev": yes, "cgroup/sysctl": yes, "cgroup/getsockopt": yes,
		"cgroup/setsockopt": yes, "sockops": yes, "sk_lookup": yes, "netfilter": yes, "iter/task": yes, "fentry/vfs_open": {0, 0}, "fexit/vfs_open": {0, 0},
		"kprobe.session/vfs_open": yes, "uprobe.session": yes, "kprobe.multi/vfs_open": any, "kprobe/vfs_open": any, "raw_tp/sys_enter": any,
		"tp/sched/sched_switch": any, "tp_btf/sched_switch": any, "fmod_ret/security_file_open": any, "xdp": any, "tc": any, "perf_event": any, "socket": any,
	} {
		for _, value := range []int64{-100, -1, 0, 1, 2, 3, 4, 100} {
			o := programOf(section, []insn{{Op: 0xb7, Imm: value}, {Op: 0x95}})
			s := NewScenes(o, k, Decisions{}, Loading{}, Loaders())[0]
			e := Evaluation{Scene: s, pr: &o.Programs[0]}
			e.may = e.returns(0)
			takes := Worst(e.onCode(t.Context())) == OK
			if in := want.lo <= value && value <= want.hi; takes != in {
				t.Errorf("%s returns %d: %t", section, value, takes)
			}
		}
	}
}

func TestExtents(t *testing.T) {
	for _, c := range []struct {
		may      extent
		lo, hi   uint64
		excludes bool
		text     string
	}{
		{extent{0, 0}, 0, 0, false, "0"},
		{extent{0, 0}, 1, 1, true, "1"},
		{extent{0, 0}, 3, 8, true, "3 to 8"},
		{extent{0, 1}, 1, 2, false, "1 or 2"},
		{extent{0, 1}, 1 << 32, 1 << 32, false, "4294967296"}, // the lower half is 0
		{extent{0, 1}, math.MaxUint32, math.MaxUint32, true, "-1"},
		{extent{-4095, 0}, math.MaxUint32, math.MaxUint32, false, "-1"},
		{extent{-4095, 0}, math.MaxUint64, math.MaxUint64, false, "-1"},
		{extent{-4095, 0}, math.MaxUint64 - 4095, math.MaxUint64 - 4095, true, "-4096"},
		{extent{-4095, 0}, math.MaxUint32 - 4095, math.MaxUint32 - 4095, true, "-4096"},
		{extent{0, 1}, math.MaxInt32 - 1, math.MaxInt32 + 2, false, "2147483646 to 2147483649"}, // the lower half changes its sign
	} {
		if got := c.may.excludes(c.lo, c.hi); got != c.excludes {
			t.Errorf("%v excludes %#x to %#x: %t", c.may, c.lo, c.hi, got)
		}
		if got := numbers(c.lo, c.hi).String(); got != c.text {
			t.Errorf("%#x to %#x: %s, want %s", c.lo, c.hi, got, c.text)
		}
	}
}
