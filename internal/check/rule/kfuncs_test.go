// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"testing"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestKfuncs checks verdicts on which programs may call kfuncs between the releases that differ.
func TestKfuncs(t *testing.T) {
	for _, tt := range []struct {
		release, section, kfunc string
		want                    Status
	}{
		{"6.12.1", "tp_btf/sched_switch", "bpf_task_acquire", OK},
		{"6.12.1", "raw_tp/sched_switch", "bpf_task_acquire", MayFail},
		{"6.19.1", "raw_tp/sched_switch", "bpf_task_acquire", MayFail},
		{"7.0.1", "raw_tp/sched_switch", "bpf_task_acquire", OK},
		{"7.2.1", "raw_tp/sched_switch", "bpf_task_acquire", OK},
		{"6.12.1", "sockops", "bpf_task_acquire", MayFail},
		{"6.18.1", "sockops", "bpf_task_acquire", OK},
		{"6.18.1", "kprobe/vfs_read", "bpf_rcu_read_lock", OK},
		{"6.19.1", "kprobe/vfs_read", "bpf_arena_alloc_pages", MayFail},
		{"6.19.1", "uprobe.s", "bpf_arena_alloc_pages", OK},
		{"7.2.1", "kprobe/vfs_read", "bpf_arena_alloc_pages", OK},
		{"6.18.1", "tc", "bpf_of_a_module", OK},
		{"6.18.1", "tc", "bpf_sock_addr_set_sun_path", Fails},
		{"6.18.1", "socket", "bpf_task_from_pid", Fails},
		{"6.18.1", "sk_lookup", "bpf_task_from_pid", Fails},
		{"6.18.1", "kprobe/vfs_read", "bpf_put_file", Fails},
		{"7.2.1", "kprobe/vfs_read", "bpf_put_file", MayFail},
		{"6.18.1", "lsm/file_open", "bpf_put_file", OK},
		{"6.18.1", "fentry/vfs_read", "bpf_put_file", Fails}, // filters of kfuncs decide this case and the following ones
		{"6.8.1", "fentry/vfs_read", "bpf_get_file_xattr", Fails},
		{"6.18.1", "iter/tcp", "bpf_sock_destroy", OK},
		{"6.5.1", "fentry/tcp_close", "bpf_sock_destroy", Fails},
		{"6.18.1", "lsm/file_open", "bpf_sock_destroy", Fails},
		{"7.2.1", "fentry/tcp_close", "bpf_sock_destroy", MayFail},
		{"6.18.1", "kprobe.session/vfs_read", "bpf_session_cookie", OK},
		{"6.18.1", "kprobe.multi/vfs_read", "bpf_session_cookie", Fails},
		{"6.18.1", "kprobe/vfs_read", "bpf_session_cookie", MayFail}, // the loader may say that it is a session
		{"6.18.1", "fentry/vfs_read", "css_rstat_updated", OK},
	} {
		k := &Inventory{want: new(Wanted), version: VersionOf(kernel.Key{Release: tt.release})}
		k.settle()
		if got := k.kfuncForbidden(bpfobj.SectionOf(tt.section), tt.kfunc); got.Status != tt.want {
			t.Errorf("%s: %s: %s: %v, want %s", tt.release, tt.section, tt.kfunc, got, tt.want)
		}
	}
}

// TestKfuncTags checks BTF with tags for kfuncs: it tags exactly the functions that programs can call.
func TestKfuncTags(t *testing.T) {
	raceflag.SkipSerial(t)
	want := &Wanted{names: make(map[string]int)}
	want.add(featureNames()...)
	want.add("vfs_read", "schedule")
	for _, name := range facts.Kfuncs() {
		want.add(name)
	}
	kernels := 0
	testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
		k := inspectItem(t, it, want)
		tagged := 0
		for name := range want.names {
			y, ok := k.find(name, btf.KindFunc)
			if !ok || k.kfuncs == nil {
				continue
			}
			is := facts.KfuncCallers(name) != nil
			if is {
				tagged++
			}
			if is && it.Key.ID != "debian" { // built without a setting, a kernel can have the function outside of the sets
				continue
			}
			if k.notKfunc(y) == is {
				t.Errorf("%s: %s is tagged: %t, want %t", it.Name, name, !k.notKfunc(y), is)
			}
		}
		if tagged > 0 {
			kernels++
		}
	})
	if kernels == 0 {
		t.Error("no kernel has tags")
	}
}
