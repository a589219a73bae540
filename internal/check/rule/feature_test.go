// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"testing"

	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// appeared is when parts of the kernel's interface came, by the kernel's own
// history. Distributions that carry newer BPF code in older kernels are not in
// the corpus with a version below these.
var appeared = []struct {
	enum  facts.Enum
	name  string
	since string
}{
	{facts.EnumHelper, "BPF_FUNC_probe_read_kernel", "5.5"},
	{facts.EnumHelper, "BPF_FUNC_ringbuf_output", "5.8"},
	{facts.EnumHelper, "BPF_FUNC_redirect_peer", "5.10"},
	{facts.EnumHelper, "BPF_FUNC_get_current_task_btf", "5.11"},
	{facts.EnumHelper, "BPF_FUNC_for_each_map_elem", "5.13"},
	{facts.EnumHelper, "BPF_FUNC_get_attach_cookie", "5.15"},
	{facts.EnumHelper, "BPF_FUNC_kallsyms_lookup_name", "5.16"},
	{facts.EnumHelper, "BPF_FUNC_loop", "5.17"},
	{facts.EnumHelper, "BPF_FUNC_user_ringbuf_drain", "6.1"},
	{facts.EnumMap, "BPF_MAP_TYPE_RINGBUF", "5.8"},
	{facts.EnumMap, "BPF_MAP_TYPE_TASK_STORAGE", "5.11"},
	{facts.EnumMap, "BPF_MAP_TYPE_BLOOM_FILTER", "5.16"},
	{facts.EnumMap, "BPF_MAP_TYPE_ARENA", "6.9"},
	{facts.EnumProg, "BPF_PROG_TYPE_LSM", "5.7"},
	{facts.EnumProg, "BPF_PROG_TYPE_SYSCALL", "5.14"},
	{facts.EnumProg, "BPF_PROG_TYPE_NETFILTER", "6.4"},
	{facts.EnumAttach, "BPF_TRACE_KPROBE_MULTI", "5.18"},
	{facts.EnumAttach, "BPF_TRACE_KPROBE_SESSION", "6.10"},
	{facts.EnumLink, "BPF_LINK_TYPE_KPROBE_MULTI", "5.18"},
	{facts.EnumLink, "BPF_LINK_TYPE_PERF_EVENT", "5.15"},
	{facts.EnumLink, "BPF_LINK_TYPE_STRUCT_OPS", "5.19"},
	{facts.EnumLink, "BPF_LINK_TYPE_NETFILTER", "6.4"},
	{facts.EnumLink, "BPF_LINK_TYPE_UPROBE_MULTI", "6.6"},
	{facts.EnumLink, "BPF_LINK_TYPE_TCX", "6.6"},
	{facts.EnumLink, "BPF_LINK_TYPE_NETKIT", "6.7"},
	{facts.EnumAttach, "BPF_STRUCT_OPS", "6.4"},
	{facts.EnumAttach, "BPF_TRACE_UPROBE_MULTI", "6.6"},
	{facts.EnumAttach, "BPF_TCX_INGRESS", "6.6"},
	{facts.EnumAttach, "BPF_NETKIT_PRIMARY", "6.7"},
	{facts.EnumHelper, "BPF_FUNC_spin_lock", "5.1"},
	{facts.EnumHelper, "BPF_FUNC_check_mtu", "5.12"},
	{facts.EnumCond, "BPF_MAY_GOTO", "6.9"},
}

// inspectItem is inspect for a kernel of the corpus, without its modules.
func inspectItem(t *testing.T, it *corpus.Kernel, w *Wanted) *Inventory {
	t.Helper()
	tg := new(core.Target)
	if why := tg.Load(t.Context(), it.Name, it.BTF); why != nil {
		t.Fatal(it.Name, why)
	}
	return inspectBTF(t.Context(), tg, w, it.Key, it.Arch)
}

// TestAppeared compares the corpus's enums with the kernel's history.
func TestAppeared(t *testing.T) {
	raceflag.SkipSerial(t)
	want := &Wanted{names: make(map[string]int)}
	want.add(featureNames()...)
	n := 0
	testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
		release := it.Key.Release
		if release == "" || release[0] < '0' || release[0] > '9' || it.Key.ID != "debian" {
			return
		}
		k := inspectItem(t, it, want)
		for _, a := range appeared {
			if k.enums[a.enum] == nil && a.enum <= facts.EnumLink {
				t.Errorf("%s: no enum %s", it.Name, a.enum)
				continue
			}
			_, has := k.enums[a.enum][a.name]
			if should := kernel.CompareVersions(release, a.since) >= 0; has != should {
				t.Errorf("%s: %s there: %t, but it came in %s", it.Name, a.name, has, a.since)
			}
			n++
		}
		for name, since := range facts.Interface() {
			enum, enumerator := facts.Enumerator(name)
			_, has := k.enums[enum][enumerator]
			if should := kernel.CompareVersions(release, since.String()) >= 0; has != should {
				t.Errorf("%s: %s there: %t, but it came in %s", it.Name, enumerator, has, since)
			}
			n++
		}
		version := func(v string) bool { return kernel.CompareVersions(release, v) >= 0 }
		for feature, name := range features {
			if has, want := k.features.Has(feature), version(name.Since().String()); has != want {
				t.Errorf("%s: %s there: %t, want %t", it.Name, name, has, want)
			}
		}
	})
	if n == 0 {
		t.Error("no kernel")
	}
	t.Logf("%d compared", n)
}

func TestHelperName(t *testing.T) {
	for id, want := range map[int64]string{1: "bpf_map_lookup_elem", 113: "bpf_probe_read_kernel", 181: "bpf_loop", 9999: "#9999"} {
		if got := facts.HelperName(id); got != want {
			t.Errorf("helper %d: %s, want %s", id, got, want)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, c := range []struct {
		id, release string
		v, m        uint64
	}{
		{"debian", "5.10.0-30-amd64", 5<<16 | 10<<8, 0xff},
		{"debian", "6.12.107+deb13-amd64", 6<<16 | 12<<8 | 107, 0},
		{"fedora", "6.1.0-2.fc38", 6<<16 | 1<<8, 0},
		{"centos", "4.19.300", 4<<16 | 19<<8 | 255, 0},
		{"debian", "7.3-amd64", 7<<16 | 3<<8, 0xff},
		{"android", "5.10.43-android12-9-00005-g740f7fbe5", 5<<16 | 10<<8 | 43, 0},
		{"android", "a12-5.10-2021-09-arm64", 5<<16 | 10<<8, 0xff},
		{"", "", 0, 0xffffffff},
		{"x", "vmlinux", 0, 0xffffffff},
	} {
		got := VersionOf(kernel.Key{ID: c.id, Release: c.release})
		if got.V != c.v || got.Unknown != c.m {
			t.Errorf("%s %s: %x mask %x", c.id, c.release, got.V, got.Unknown)
		}
	}
}
