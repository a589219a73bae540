// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/testing/raceflag"
	"github.com/btfgen/btfgen/internal/testing/testinput"
	"github.com/btfgen/btfgen/pkg/kernel"
)

// TestAttachTypes checks which programs load on kernels without their type of attachment: the kernel does not look at it when it loads them.
func TestAttachTypes(t *testing.T) {
	raceflag.SkipSerial(t)
	k := oldest(t, NewWanted(nil))
	Age(k, Linux(4, 19))
	for section, loads := range map[string]bool{
		"xdp/devmap": true, "xdp/cpumap": true, "kprobe.multi/do_*": true, "sk_reuseport/migrate": true, "cgroup/getpeername4": false, "sk_lookup": false, "lsm/file_open": false,
	} {
		_, l := verdictOn(t, programOf(section, []insn{{Op: 0xb7}, {Op: bpfobj.OpExit}}), k)
		got := Finding{}
		for _, f := range l {
			if f.Code == AttachTypeMissing {
				got = f
			}
		}
		want := Fails
		if section == "sk_reuseport/migrate" {
			want = MayFail
		}
		if got.Status != want || got.Attach != loads {
			t.Errorf("%s: %+v of %v, want it to load: %t", section, got, l, loads)
		}
	}
}

// TestLinks wants each way to attach that takes a link refused on the kernels
// of the corpus before its links came, and on no later one.
func TestLinks(t *testing.T) {
	raceflag.SkipSerial(t)
	cookie := insn{Op: bpfobj.OpCall, Imm: int64(asm.FnGetAttachCookie)}
	ok := insn{Op: 0xb7}
	cases := []struct {
		section string
		in      insn
		link    string // "" for none
		since   string
		status  Status // on older kernels
	}{
		{"kprobe/do_exit", ok, "", "", OK},
		{"fentry/do_exit", cookie, "", "", OK},
		{"kprobe.multi/do_*", cookie, "BPF_LINK_TYPE_KPROBE_MULTI", "5.18", Fails},
		{"uprobe.multi", ok, "BPF_LINK_TYPE_UPROBE_MULTI", "6.6", Fails},
		{"netfilter", ok, "BPF_LINK_TYPE_NETFILTER", "6.4", Fails},
		{"tcx/ingress", ok, linkTCX, "6.6", MayFail},
		{"tc", ok, "", "", OK},
		{"netkit/peer", ok, "BPF_LINK_TYPE_NETKIT", "6.7", Fails},
		{"struct_ops/init", ok, "", "", OK},
	}
	want := &Wanted{names: make(map[string]int)}
	want.add(featureNames()...)
	counts := make(map[Status]int)
	testinput.Each(t, testinput.Corpus(t), func(it *corpus.Kernel) {
		if it.Key.ID != "debian" || it.Key.Release == "" {
			return
		}
		k := inspectItem(t, it, want)
		for _, c := range cases {
			status := OK
			if c.link != "" && kernel.CompareVersions(it.Key.Release, c.since) < 0 {
				status = c.status
			}
			o := around(c.in, true, c.section)
			e := Evaluation{Scene: sceneOn(o, k), pr: &o.Programs[0]}
			e.kind = e.calls(0)
			e.Findings = e.onCode(t.Context())
			e.interfaces()
			got := OK
			for _, f := range e.Findings {
				if FamilyOf(f.Code) == FamilyLink {
					if got = max(got, f.Status); f.Subject != c.link {
						t.Errorf("%s: %s: %v, want %s", it.Name, c.section, f, c.link)
					}
				}
			}
			if got != status {
				t.Errorf("%s: %s: %s, want %s: %v", it.Name, c.section, got, status, e.Findings)
			}
			counts[got]++
		}
		// Behind a branch that is never taken the helper does not count.
		o := around(cookie, false, "kprobe")
		if got, l := judgeCode(o, k); got != OK && got != Guarded || (got == Guarded) != (kernel.CompareVersions(it.Key.Release, "5.15") < 0) {
			t.Errorf("%s: guarded cookie: %s: %v", it.Name, got, l)
		}
	})
	t.Log(counts)
	if counts[OK] == 0 || counts[Fails] == 0 || counts[MayFail] == 0 {
		t.Error("not every verdict came up")
	}
}

// TestLinksWithoutEnum wants links refused on kernels from before links, whose BTF has no enum of their types.
func TestLinksWithoutEnum(t *testing.T) {
	k := &Inventory{whole: true, want: new(Wanted)}
	for section, want := range map[string]Status{"kprobe.multi/do_*": Fails, "netfilter": Fails, "tc": OK, "tcx/ingress": MayFail, "netkit/peer": Fails} {
		for enum := range k.enums {
			k.enums[enum] = map[string]uint64{"BPF_PROG_TYPE_KPROBE": 2}
		}
		k.enums[facts.EnumLink] = nil
		o := around(insn{Op: 0xb7}, true, section)
		e := Evaluation{Scene: sceneOn(o, k), pr: &o.Programs[0]}
		k.settle()
		e.interfaces()
		got := OK
		for _, f := range e.Findings {
			if FamilyOf(f.Code) == FamilyLink {
				got = max(got, f.Status)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s: %v", section, got, want, e.Findings)
		}
	}
}

// TestOptionalAttachment checks the verdicts on types of attachment that loaders may omit: 5.10 loads programs of sk_skb/verdict, and attaches none.
func TestOptionalAttachment(t *testing.T) {
	raceflag.SkipSerial(t)
	k := oldest(t, NewWanted(nil))
	for section, want := range map[string]Status{"sk_skb/verdict": Fails, "sk_skb/stream_verdict": OK, "xdp": OK, "sockops": OK} {
		got, l := verdictOn(t, programOf(section, []insn{{Op: 0xb7}, {Op: 0x95}}), k)
		if got != want || want == Fails && !l[0].Attach {
			t.Errorf("%s: %s, want %s: %v", section, got, want, l)
		}
	}
}
