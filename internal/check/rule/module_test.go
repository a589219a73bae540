// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/testing/testbtf"
	"github.com/btfgen/btfgen/pkg/kernel"
	"github.com/btfgen/btfgen/pkg/relo"
)

// TestModule attaches programs to a function that only a module has, and to one
// of vmlinux.
func TestModule(t *testing.T) {
	const types = "proto #p int: a int\nfunc built_in #p\nfunc register_kprobe #p\n"
	vmlinux := testbtf.Types(t, binary.LittleEndian, types)
	module := testbtf.Module(t, binary.LittleEndian, types, "func in_module #p")
	tg := new(core.Target)
	if err := tg.Load(t.Context(), "k", vmlinux, relo.Module{Name: "md_mod", BTF: module}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		section string
		want    Status
		attach  bool
	}{
		{"fentry/built_in", OK, false}, {"kprobe/built_in", OK, false},
		{"fentry/in_module", MayFail, false}, {"kprobe/in_module", MayFail, true},
	} {
		want := &Wanted{names: make(map[string]int)}
		o := around(insn{Op: 0xb7}, true, tt.section)
		names, _ := attachNames(&o.Programs[0])
		want.add(featureNames()...)
		want.add(names...)
		e := Evaluation{Scene: &Scene{o: o, k: inspectBTF(t.Context(), tg, want, kernel.Key{}, "x86_64")}, pr: &o.Programs[0]}
		e.attachment()
		if got := Worst(e.Findings); got != tt.want {
			t.Errorf("%s: %s, want %s: %v", tt.section, got, tt.want, e.Findings)
		}
		for _, f := range e.Findings {
			if f.Code != ModuleNeeded || f.Names != "md_mod" || f.Attach != tt.attach {
				t.Errorf("%s: %v", tt.section, f)
			}
		}
		if e.hook == nil && e.pr.Attach.Kind == bpfobj.AttachFunc {
			t.Errorf("%s: what it is given is not known", tt.section)
		}
	}
}

// TestAttachByBTF attaches programs to functions that BTF has more than once, to functions of a module that the section names, and to
// events of system calls. Findings are those of both loaders, in order.
func TestAttachByBTF(t *testing.T) {
	const types = `proto #p int: a int
func built_in #p
func twice #p
proto #q int: a u32
func twice #q
func register_kprobe #p
func do_exit #p
func __x64_sys_bpf #p
func __do_sys_sync #p
func __x64_sys_sync_file_range #p
func __x64_sys_sync_file_range2 #p
`
	vmlinux := testbtf.Types(t, binary.LittleEndian, types)
	module := testbtf.Module(t, binary.LittleEndian, types, "func in_module #p")
	const loaded, missing = "may fail: module-needed md_mod", "fails: attach-target-missing"
	const sleeps, noBTF = "may fail to attach: attach-target-sleeps-tracepoint", "unknown to attach: attach-target-tracepoints"
	for name, tt := range map[string]struct {
		section string
		modules bool
		want    []string
	}{
		"vmlinux":                    {"fentry/vmlinux:built_in", true, nil},
		"module":                     {"fexit/md_mod:in_module", true, []string{loaded}},
		"beginning of its name":      {"fentry/md:in_module", true, []string{loaded}},
		"another module":             {"fentry/nf_nat:in_module", true, []string{missing}},
		"not in the module":          {"fmod_ret/md_mod:built_in", true, []string{missing}},
		"no BTF of modules":          {"fentry/nf_nat:in_module", false, []string{"may fail: attach-target-module-btf nf_nat"}},
		"not in vmlinux":             {"fentry/vmlinux:in_module", false, []string{missing}},
		"twice":                      {"fentry/twice", false, []string{"ebpf-go: fails: attach-target-ambiguous"}},
		"a kprobe":                   {"kprobe/twice", false, nil},
		"system call":                {"tracepoint/syscalls/sys_enter_sync_file_range", false, nil},
		"one without arguments":      {"tracepoint/syscalls/sys_enter_sync", false, nil},
		"its end":                    {"tp/syscalls/sys_exit_sync_file_range", false, nil},
		"system call without number": {"tp/syscalls/sys_enter_sync_file_range2", false, []string{"fails to attach: attach-target-syscall"}},
		"one of arm":                 {"tp/syscalls/sys_exit_arm_sync_file_range", false, []string{"fails to attach: attach-target-syscall"}},
		"no system call":             {"tp/syscalls/sys_exit_openat2", false, []string{"may fail to attach: attach-target-syscall-unlisted"}},
		"no event of one":            {"tp/syscalls/other", false, nil},
		"one of several":             {"fentry.multi/built_in", false, nil},
		"denied at the end":          {"fexit.multi/do_exit", false, []string{"may fail to attach: attach-target-noreturn"}},
		"not denied at the start":    {"fentry.multi/do_exit", false, nil},
		"several":                    {"fsession.multi/buil?_*", false, []string{"may fail to attach: attach-target-pattern-each"}},
		"none":                       {"fentry.multi/x*", false, []string{"fails to attach: attach-target-pattern-missing"}},
		"not one":                    {"fexit.multi/in_module", true, []string{"fails to attach: attach-target-missing"}},
		"of a module":                {"fexit.multi/md_mod:in_*", true, []string{loaded}},
		"chosen by the loader":       {"fexit.multi", true, nil},
		"sleeps at a system call":    {"tp.s/syscalls/sys_enter_sync", false, nil},
		"sleeps at another event":    {"tp.s/sched/sched_switch", false, []string{sleeps, noBTF}},
		"sleeps at any system call":  {"raw_tp.s/sys_enter", false, []string{noBTF}},
		"sleeps at a raw tracepoint": {"raw_tracepoint.s/sched_switch", false, []string{"fails to attach: attach-target-sleeps-tracepoint", noBTF}},
		"sleeps at one with BTF":     {"tp_btf.s/sched_switch", false, []string{"may fail: attach-target-sleeps-tracepoint", "may fail: attach-target-module-btf"}},
	} {
		tg := new(core.Target)
		var modules []relo.Module
		if tt.modules {
			modules = append(modules, relo.Module{Name: "md_mod", BTF: module})
		}
		if err := tg.Load(t.Context(), "k", vmlinux, modules...); err != nil {
			t.Fatal(err)
		}
		want := &Wanted{names: make(map[string]int)}
		o := around(insn{Op: 0xb7}, true, tt.section)
		names, pattern := attachNames(&o.Programs[0])
		want.add(featureNames()...)
		want.add(names...)
		want.add(allSyscallNames("bpf")...)
		if pattern != "" {
			want.patterns = append(want.patterns, newGlob(pattern))
		}
		e := Evaluation{Scene: &Scene{loader: EbpfGo, o: o, k: inspectBTF(t.Context(), tg, want, kernel.Key{}, "x86_64")}, pr: &o.Programs[0]}
		e.attachment()
		var got []string
		for _, f := range e.Findings {
			if f.Code != AttachTargetInjection {
				got = append(got, brief(&f))
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s:\n%q, want\n%q", name, got, tt.want)
		}
	}
}

// TestElsewhere attaches programs to what a kernel does not have, as far as its BTF shows whether modules may have it.
func TestElsewhere(t *testing.T) {
	const base = "proto #p int: a int\nfunc register_kprobe #p\nstruct bpf_verifier_env 8: a u32 0\n"
	const loads, looks = "struct module 8: state u32 0\n", "struct btf_module 8: id u32 0\n"
	const missing, may, loader = "fails: attach-target-missing", "may fail: attach-target-module-btf", "unknown: attach-target-from-loader"
	for name, tt := range map[string]struct{ types, config, section, want string }{
		"a function":              {loads + looks, "", "fentry/ext4_file_open", may},
		"a tracepoint":            {loads + looks, "", "tp_btf/ext4_sync", may},
		"before 5.11":             {loads, "", "fentry/ext4_file_open", missing},
		"without modules":         {looks, "", "fexit/ext4_file_open", missing},
		"by its configuration":    {loads + looks, "CONFIG_BPF=y\n", "fexit/ext4_file_open", missing},
		"with modules":            {loads + looks, "CONFIG_MODULES=y\n", "fexit/ext4_file_open", may},
		"a hook":                  {loads + looks, "", "lsm/no_such", missing},
		"an iterator":             {loads + looks, "", "iter/no_such", missing},
		"a system call":           {loads + looks, "", "fentry/__x64_sys_no_such", missing},
		"of vmlinux":              {loads + looks, "", "fentry/vmlinux:ext4_file_open", missing},
		"a placeholder":           {loads, "", "fentry/dummy_file_read", loader},
		"a tracepoint of none":    {loads, "", "tp_btf/placeholder", loader},
		"a hook that stands for":  {loads + looks, "", "lsm/generic_lsm_core", loader},
		"a kprobe has other ways": {loads + looks, "", "kprobe/ext4_file_open", "may fail to attach: attach-target-unlisted"},
	} {
		tg := new(core.Target)
		if err := tg.Load(t.Context(), "k", testbtf.Types(t, binary.LittleEndian, base+tt.types)); err != nil {
			t.Fatal(err)
		}
		o := around(insn{Op: 0xb7}, true, tt.section)
		k := inspectBTF(t.Context(), tg, NewWanted([]*Object{o}), kernel.Key{}, "x86_64")
		if tt.config != "" {
			k.readConfig([]byte(tt.config))
			k.settle()
		}
		e := Evaluation{Scene: &Scene{o: o, k: k}, pr: &o.Programs[0]}
		e.attachment()
		if len(e.Findings) == 0 || brief(&e.Findings[len(e.Findings)-1]) != tt.want {
			t.Errorf("%s: %v, want %s", name, e.Findings, tt.want)
		}
	}
}

// TestKprobes attaches programs on a kernel without kprobes: they load, and
// cannot be attached.
func TestKprobes(t *testing.T) {
	tg := new(core.Target)
	if err := tg.Load(t.Context(), "k", testbtf.Types(t, binary.LittleEndian, "proto #p int: a int\nfunc built_in #p")); err != nil {
		t.Fatal(err)
	}
	for section, want := range map[string]Status{"kprobe/built_in": Fails, "kretprobe/no_such": Fails, "ksyscall/open": Fails, "fentry/built_in": OK, "uprobe": OK} {
		w := &Wanted{names: make(map[string]int)}
		o := around(insn{Op: 0xb7}, true, section)
		names, _ := attachNames(&o.Programs[0])
		w.add(names...)
		e := Evaluation{Scene: &Scene{o: o, k: inspectBTF(t.Context(), tg, w, kernel.Key{}, "x86_64")}, pr: &o.Programs[0]}
		e.attachment()
		if got := Worst(e.Findings); got != want || want == Fails && (!e.Findings[0].Attach || len(e.Findings) > 1) {
			t.Errorf("%s: %v", section, e.Findings)
		}
	}
}

// brief is a finding without what it is about.
func brief(f *Finding) string {
	text := f.Status.String()
	if f.Attach {
		text += " to attach"
	}
	text += ": " + string(f.Code)
	if f.Loader != "" {
		text = string(f.Loader) + ": " + text
	}
	return strings.TrimSpace(text + " " + string(f.Names) + " " + string(f.When))
}
