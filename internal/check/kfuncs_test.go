// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/internal/testing/loadtest"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// kfuncTag is the declaration tag of kfuncs, in the BTF of kernels since 6.10 or so.
const kfuncTag = "bpf_kfunc"

// runningKfuncs returns the IDs of the running kernel's kfuncs: those with the tag, and what goes
// by the name of one in the table.
func runningKfuncs(t *testing.T, table *kfuncRules) map[string]btf.TypeID {
	t.Helper()
	tg := new(target)
	if err := tg.Load(t.Context(), "running", loadtest.Kernel(t)); err != nil {
		t.Fatal(err)
	}
	ids := make(map[string]btf.TypeID)
	can := false // Linux before 5.13 cannot call kfuncs, and may have functions of these names
	tg.types(func(_ string, b *btf.BTF) {
		for id := b.FirstID(); int(id) < b.NumTypes(); id++ {
			switch ty := b.Type(id); {
			case ty.Kind() == btf.KindDeclTag && string(ty.Name()) == kfuncTag:
				f := b.Type(ty.Ref())
				ids[string(f.Name())] = f.ID
			case ty.Kind() == btf.KindFunc && table.of[string(ty.Name())] != nil:
				ids[string(ty.Name())] = id
			case ty.Kind() == btf.KindStruct && string(ty.Name()) == "bpf_kfunc_desc":
				can = true
			}
		}
	})
	if !can {
		return nil
	}
	return ids
}

// TestVerifierKfuncs asks the running kernel, of each type of programs, which kfuncs they may
// call. None that it lets them call may count as forbidden. With -v the answers are logged: kfuncs.txt is
// made of them.
func TestVerifierKfuncs(t *testing.T) {
	k := datedKernel(t)
	ids := runningKfuncs(t, kfuncTable())
	names := slices.Sorted(maps.Keys(ids))
	if len(names) == 0 {
		t.Skip("skipped: the kernel has no kfuncs in its BTF")
	}
	allowedBy := map[string]map[string]bool{"sleeps": {}} // by type of programs
	for _, p := range probes {
		s, l := p.loader(t, k)
		if l == nil {
			continue
		}
		if allowedBy[s.ProgType] == nil {
			allowedBy[s.ProgType] = make(map[string]bool)
		}
		for _, name := range names {
			log, err := l.load(insn{Op: bpfobj.OpCall, Src: 2, Imm: int64(ids[name])})
			if errors.Is(err, unix.EPERM) {
				t.Fatal(p.section, err)
			}
			forbids := strings.Contains(log, "calling kernel function") && strings.Contains(log, "is not allowed") || strings.Contains(log, "is not a kernel function")
			if !forbids {
				allowedBy[s.ProgType][name] = true
			}
			why := k.kfuncForbidden(s, name)
			sleeps := strings.Contains(log, "sleepable")
			if sleeps {
				allowedBy["sleeps"][name] = true
			}
			switch status := why.Status; {
			case sleeps && status == OK:
				t.Errorf("%s: %s sleeps, but that is fine: %s", p.section, name, log)
			case !forbids && !sleeps && status == Fails && (err == nil || why.Code != KfuncSleeps): // 6.1 looks at the arguments first
				t.Errorf("%s: %s is allowed, but %v: %s", p.section, name, why, log)
			case forbids && status == OK && !narrowed[name]:
				t.Errorf("%s: %s is not allowed", p.section, name)
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(allowedBy)) {
		t.Logf("KFUNC %s: %s", kind, strings.Join(slices.Sorted(maps.Keys(allowedBy[kind])), " "))
	}
	t.Logf("KFUNC all: %s", strings.Join(names, " "))
}

// narrowed are kfuncs that only some of the programs of a type may call.
var narrowed = map[string]bool{"bpf_sock_destroy": true}

// TestKfuncs reads the table and holds verdicts on kernels between those that were asked.
func TestKfuncs(t *testing.T) {
	if _, err := readKfuncs(kfuncText); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"a", "a: B", "a @x: B", "a @6.1: +b", "a @6.1: B@6.2", "a @6.1: B\na @6.1: B", "sleeps @6.1: a", "sleeps 6.1..6.2: a"} {
		if r, err := readKfuncs(bad); err == nil {
			t.Errorf("%q: %v", bad, r)
		}
	}
	for _, tt := range []struct {
		release, section, kfunc string
		want                    Status
	}{
		{"6.12.1", "tp_btf/sched_switch", "bpf_task_acquire", OK},
		{"6.12.1", "kprobe/vfs_read", "bpf_task_acquire", Fails},
		{"7.3.0", "kprobe/vfs_read", "bpf_task_acquire", MayFail},
		{"6.6.0", "tp_btf/sched_switch", "bpf_task_acquire", MayFail},
		{"6.12.1", "raw_tp/sched_switch", "bpf_task_acquire", Fails},
		{"6.18.1", "raw_tp/sched_switch", "bpf_task_acquire", Fails},
		{"7.0.1", "raw_tp/sched_switch", "bpf_task_acquire", MayFail},
		{"7.2.1", "raw_tp/sched_switch", "bpf_task_acquire", OK},
		{"6.18.1", "kprobe/vfs_read", "bpf_rcu_read_lock", OK},
		{"6.18.1", "kprobe/vfs_read", "bpf_copy_from_user_str", Fails},
		{"6.18.1", "fentry.s/vfs_read", "bpf_copy_from_user_str", OK},
		{"6.18.1", "kprobe/vfs_read", "bpf_iter_css_task_new", Fails},
		{"6.18.1", "iter/task", "bpf_iter_css_task_new", OK},
		{"6.18.1", "kprobe/vfs_read", "bpf_arena_alloc_pages", Fails},
		{"7.0.1", "kprobe/vfs_read", "bpf_arena_alloc_pages", MayFail},
		{"7.2.1", "kprobe/vfs_read", "bpf_arena_alloc_pages", OK},
		{"6.18.1", "kprobe.session/vfs_read", "bpf_session_is_return", MayFail},
		{"6.18.1", "tc", "bpf_of_a_module", MayFail},
	} {
		k := &inventory{version: versionOf(kernel.Key{Release: tt.release})}
		if got := k.kfuncForbidden(bpfobj.SectionOf(tt.section), tt.kfunc); got.Status != tt.want {
			t.Errorf("%s: %s: %s: %v, want %s", tt.release, tt.section, tt.kfunc, got, tt.want)
		}
	}
}

// TestCallers is TestKfuncs for programs, which scripts/check-kernels.sh loads into kernels.
func TestCallers(t *testing.T) {
	raceflag.SkipSerial(t)
	absent := map[string]Status{"5.10": Guarded, "6.1": Guarded}
	with := func(on map[string]Status) map[string]Status {
		out := maps.Clone(absent)
		maps.Copy(out, on)
		return out
	}
	expectVerdicts(t, "callers", []Family{FamilyKfunc}, map[string]expected{
		"traced":  {on: absent},
		"probed":  {on: with(map[string]Status{"7.3": MayFail}), status: Fails},
		"raw":     {on: with(map[string]Status{"7.3": OK}), status: Fails},
		"allowed": {on: absent},
	})
}
