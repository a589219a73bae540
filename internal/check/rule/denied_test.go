// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestDenied attaches programs to functions that kernels keep them from, by release, update, symbol and configuration.
func TestDenied(t *testing.T) {
	const types = "proto #p int: a int\nfunc register_kprobe #p\nfunc do_exit #p\nfunc migrate_disable #p\nfunc preempt_count_add #p\nfunc get_kprobe #p\nfunc ktime_get_mono_fast_ns #p\nfunc vfs_open #p\nfunc bpf_lsm_file_open #p\n"
	for name, tt := range map[string]struct {
		section, release, config, symbols string
		want                              []string
	}{
		"denied":               {"fentry/migrate_disable", "5.14.0", "", "", []string{"fails: attach-target-denied"}},
		"denied later":         {"fentry/migrate_disable", "5.12.9", "", "", nil},
		"denied in between":    {"fentry/migrate_disable", "5.13.1", "", "", []string{"may fail: attach-target-denied"}},
		"denied in an update":  {"fexit/preempt_count_add", "6.1.158", "", "", []string{"fails: attach-target-denied"}},
		"before the update":    {"fexit/preempt_count_add", "6.1.5", "", "", []string{"may fail: attach-target-denied"}},
		"a kprobe":             {"kprobe/migrate_disable", "5.14.0", "", "", nil},
		"no return":            {"fexit/do_exit", "6.15.0", "", "", []string{"fails: attach-target-noreturn"}},
		"no return, updated":   {"fexit/do_exit", "6.12.117", "", "", []string{"fails: attach-target-noreturn"}},
		"no return, before":    {"fexit/do_exit", "6.14.0", "", "", nil},
		"its entry":            {"fentry/do_exit", "7.2.0", "", "", nil},
		"notrace":              {"fentry/ktime_get_mono_fast_ns", "5.10.0", "", "", []string{"fails to attach: attach-target-notrace"}},
		"blacklisted":          {"kprobe/get_kprobe", "5.10.0", "", "", []string{"fails to attach: attach-target-blacklisted"}},
		"by a symbol":          {"kprobe/vfs_open", "5.10.0", "", "t _text\nt vfs_open\nd _kbl_addr_vfs_open\n", []string{"fails to attach: attach-target-blacklisted"}},
		"by none":              {"kprobe/vfs_open", "5.10.0", "", "t _text\nt vfs_open\n", nil},
		"without a tracer":     {"fentry/vfs_open", "5.10.0", "CONFIG_MODULES=y\n", "", []string{"fails to attach: attach-target-tracer"}},
		"with a tracer":        {"fentry/vfs_open", "5.10.0", "CONFIG_FUNCTION_TRACER=y\n", "", nil},
		"a hook that is off":   {"lsm/file_open", "5.10.0", "CONFIG_FUNCTION_TRACER=y\nCONFIG_LSM=\"yama,apparmor\"\n", "", []string{"ok to attach: attach-target-lsm-off"}},
		"a hook that is on":    {"lsm/file_open", "5.10.0", "CONFIG_FUNCTION_TRACER=y\nCONFIG_LSM=\"yama,bpf\"\n", "", nil},
		"fentry on the hook":   {"fentry/bpf_lsm_file_open", "5.10.0", "CONFIG_FUNCTION_TRACER=y\nCONFIG_LSM=\"yama\"\n", "", nil},
		"unknown which starts": {"lsm/file_open", "5.10.0", "CONFIG_FUNCTION_TRACER=y\n", "", nil},
	} {
		tg := new(core.Target)
		if err := tg.Load(t.Context(), "k", testbtf.Types(t, binary.LittleEndian, types)); err != nil {
			t.Fatal(err)
		}
		o := around(insn{Op: 0xb7}, true, tt.section)
		k := inspectBTF(t.Context(), tg, NewWanted([]*Object{o}), kernel.Key{ID: "x", Release: tt.release}, "x86_64")
		if tt.config != "" {
			k.readConfig([]byte(tt.config))
		}
		if tt.symbols != "" {
			k.readSymbols(t.Context(), []byte(tt.symbols))
		}
		k.settle()
		e := Evaluation{Scene: &Scene{o: o, k: k}, pr: &o.Programs[0]}
		e.attachment()
		var got []string
		for _, f := range e.Findings {
			if f.Code != AttachTargetInjection {
				got = append(got, brief(&f))
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestNullable reads through arguments of a tracepoint: one may be null, with and without a test; one may not; and one may be an
// error.
func TestNullable(t *testing.T) {
	const load, read, same, exit = 0x79, 0x61, 0x15, bpfobj.OpExit
	through := func(arg int16, test bool) []insn {
		code := []insn{{Op: load, Dst: 2, Src: 1, Off: 8 * arg}, {Op: 0xb7}}
		if test {
			code = append(code, insn{Op: same, Dst: 2, Off: 1})
		}
		return append(code, insn{Op: read, Dst: 3, Src: 2, Off: 4}, insn{Op: exit})
	}
	const types = "struct task_struct 8: flags u32 0, pid u32 4\nproto #p int: data *void, a *task_struct, b *task_struct\n" +
		"typedef btf_trace_sched_pi_setprio *#p\ntypedef btf_trace_sched_switch *#p\ntypedef btf_trace_signal_generate *#p\nstruct bpf_verifier_env 8: a u32 0\n"
	const list = "struct bpf_raw_tp_null_args 8: mask u64 0\n"
	for name, tt := range map[string]struct {
		section string
		types   string
		code    []insn
		want    Status
	}{
		"no test":            {"tp_btf/sched_pi_setprio", list, through(1, false), Fails},
		"a test":             {"tp_btf/sched_pi_setprio", list, through(1, true), OK},
		"another argument":   {"tp_btf/sched_pi_setprio", list, through(0, false), OK},
		"another tracepoint": {"tp_btf/sched_switch", list, through(1, false), OK},
		"an old kernel":      {"tp_btf/sched_pi_setprio", "", through(1, false), OK},
		"an error":           {"tp_btf/signal_generate", list, through(1, true), Fails},
	} {
		tg := new(core.Target)
		if err := tg.Load(t.Context(), "k", testbtf.Types(t, binary.LittleEndian, types+tt.types)); err != nil {
			t.Fatal(err)
		}
		o := programOf(tt.section, tt.code)
		if err := o.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		k := inspectBTF(t.Context(), tg, NewWanted([]*Object{o}), kernel.Key{ID: "x", Release: "7.3.0"}, "x86_64")
		e := Evaluation{Scene: sceneOn(o, k), pr: &o.Programs[0]}
		e.attachment()
		worst := OK
		for _, a := range e.accesses(0) {
			worst = max(worst, a.f.Status)
		}
		if worst != tt.want {
			t.Errorf("%s: %s, want %s: %v", name, worst, tt.want, e.Findings)
		}
	}
}

// TestDenials reads lists with mistakes.
func TestDenials(t *testing.T) {
	for _, text := range []string{"5.1..5.2 f", "[denied]\n5.x f", "[denied]\nf"} {
		if _, err := readDenials(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
