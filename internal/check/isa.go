// SPDX-License-Identifier: Apache-2.0

package check

import (
	"github.com/btfgen/btfgen/internal/bpfobj"
)

// groups says when the groups of instructions came, and what in a kernel's BTF
// came with them: the opcodes themselves are macros, which BTF does not have.
var groups = [bpfobj.NumGroups]struct {
	since  release
	enum   int
	value  string
	direct bool // the value is part of the same feature, so no kernel has one without the other
}{
	bpfobj.GroupJMP32:   {linux(5, 1), enumHelper, "BPF_FUNC_spin_lock", false},
	bpfobj.GroupAtomics: {linux(5, 12), enumHelper, "BPF_FUNC_check_mtu", false},
	bpfobj.GroupV4:      {linux(6, 6), enumAttach, "BPF_TRACE_UPROBE_MULTI", false},
	bpfobj.GroupMayGoto: {linux(6, 9), enumCond, "BPF_MAY_GOTO", true},
	bpfobj.GroupArena:   {linux(6, 9), enumMap, "BPF_MAP_TYPE_ARENA", true},
	bpfobj.GroupAcqRel:  {linux(6, 15), enumField, "BPF_RES_SPIN_LOCK", false},
	// "bpf: Add bpf_for_each_map_elem() helper", the first that calls back
	bpfobj.GroupCallback: {linux(5, 13), enumHelper, "BPF_FUNC_for_each_map_elem", true},
}

// presence is whether a kernel has something, as far as its BTF and its
// release show.
type presence uint8

const (
	present   presence = iota
	lacking            // what came with it is not in the BTF
	older              // the BTF has what came with it, but the release is an older one
	oldUntold          // the BTF does not show it, but the release is an older one
	untold             // neither shows it
)

// knows reports whether the kernel's verifier knows a group of instructions.
func (k *inventory) knows(g bpfobj.Group) presence {
	i := &groups[g]
	_, has := k.enums[i.enum][i.value]
	told := k.enums[enumHelper] != nil && k.enums[enumMap] != nil && k.enums[enumAttach] != nil
	switch {
	case has && k.before(i.since) && !i.direct:
		return older
	case has:
		return present
	case told:
		return lacking
	case k.before(i.since):
		return oldUntold
	case k.dated():
		return present
	}
	return untold
}

// instruction judges a newer instruction by the group that it belongs to, and whether verifiers look at it even if they do not reach it.
func (p *pairing) instruction(n *bpfobj.Newer) (f Finding, anyhow bool) {
	has := p.k.knows(n.Group)
	f = Finding{Status: MayFail, Code: InsnUnsupported, Subject: n.Name, Args: Args{Since: groups[n.Group].since}}
	if n.Group == bpfobj.GroupV4 {
		f.Subject += " (cpu v4)"
	}
	switch {
	case has == present:
		return Finding{}, false
	case has == lacking && n.Name == bpfobj.Gotol && !p.k.before(gotolUpdates):
		f.Doubt = Backported
	case has == lacking:
		f.Status = Fails
	case has == older:
		f.Doubt = NewerBTF
	case has == oldUntold:
		f.Doubt = OlderRelease
	default:
		f.Status, f.Doubt = Unknown, NoRelease
	}
	return f, n.Static || n.Group == bpfobj.GroupAcqRel && p.k.knows(bpfobj.GroupAtomics) == lacking
}

// ofInsn reports whether a finding is about an instruction that not every verifier knows.
func (f *Finding) ofInsn() bool { return f.Code == InsnUnsupported }

// addInsn adds a finding about an instruction. Of a kind that a program has
// many of, the first that is worst is enough.
func (e *evaluation) addInsn(f Finding) {
	for i := range e.out {
		if o := &e.out[i]; o.ofInsn() && o.Subject == f.Subject {
			if f.Status > o.Status {
				*o = f
			}
			return
		}
	}
	e.add(f)
}
