// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"encoding/binary"
	"slices"
	"testing"

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
		e := Evaluation{Pairing: &Pairing{o: o, k: k}, pr: &o.Programs[0]}
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

// TestDenials reads lists with mistakes.
func TestDenials(t *testing.T) {
	for _, text := range []string{"5.1..5.2 f", "[denied]\n5.1 f", "[denied]\nf"} {
		if _, err := readDenials(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
