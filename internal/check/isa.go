// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"

	"github.com/btfgen/btfgen/internal/bpfprog"
)

// groups says when the groups of instructions came, and what in a kernel's BTF
// came with them: the opcodes themselves are macros, which BTF does not have.
var groups = [bpfprog.NumGroups]struct {
	since  release
	enum   int
	value  string
	direct bool // the value is a part of the same feature: nobody takes one without the other
}{
	bpfprog.GroupJMP32:   {linux(5, 1), enumHelper, "BPF_FUNC_spin_lock", false},
	bpfprog.GroupAtomics: {linux(5, 12), enumHelper, "BPF_FUNC_check_mtu", false},
	bpfprog.GroupV4:      {linux(6, 6), enumAttach, "BPF_TRACE_UPROBE_MULTI", false},
	bpfprog.GroupMayGoto: {linux(6, 9), enumCond, "BPF_MAY_GOTO", true},
	bpfprog.GroupArena:   {linux(6, 9), enumMap, "BPF_MAP_TYPE_ARENA", true},
	bpfprog.GroupAcqRel:  {linux(6, 15), enumField, "BPF_RES_SPIN_LOCK", false},
	// "bpf: Add bpf_for_each_map_elem() helper", the first that calls back
	bpfprog.GroupCallback: {linux(5, 13), enumHelper, "BPF_FUNC_for_each_map_elem", true},
}

// presence is whether a kernel has something, as far as its BTF and its
// release tell.
type presence uint8

const (
	present   presence = iota
	lacking            // what came with it is not in the BTF
	older              // the BTF has what came with it, but the release is an older one
	oldUntold          // the BTF does not tell, but the release is an older one
	untold             // neither tells
)

// knows reports whether the kernel's verifier knows a group of instructions.
func (k *inventory) knows(g bpfprog.Group) presence {
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

// instruction judges an instruction by the group that it belongs to.
func (e *evaluation) instruction(u *use) {
	n := u.newer
	has := e.k.knows(n.Group)
	if has == present {
		e.cast(u)
		return
	}
	came := "came in Linux " + groups[n.Group].since.String()
	f := Finding{Status: MayFail, Topic: TopicInsn, Subject: n.Name, Source: e.o.Source(u.at)}
	if n.Group == bpfprog.GroupV4 {
		f.Subject += " (cpu v4)"
	}
	switch {
	case has == lacking && n.Name == bpfprog.Gotol && !e.k.before(linux(5, 15)):
		f.Reason = "it " + came + ", and in updates of some older kernels, whose BTF does not show it"
	case has == lacking:
		f.Status, f.Reason = Fails, "the kernel's verifier does not know it; it "+came
	case has == older:
		f.Reason = "it " + came + "; the kernel's release is older, but its BTF has what came later"
	case has == oldUntold:
		f.Reason = "it " + came + "; the kernel's release is older, and its BTF does not tell"
	default:
		f.Status, f.Reason = Unknown, "it "+came+"; neither the kernel's BTF nor its name tells the release"
	}
	if n.Static || n.Group == bpfprog.GroupAcqRel && e.k.knows(bpfprog.GroupAtomics) == lacking {
		e.addInsn(f)
		return
	}
	e.absent = append(e.absent, absence{at: u.at, f: f})
}

// cast judges an addr_space_cast of an object without an arena, on a kernel that knows it. One that is not
// reached was seen to be refused by 7.2 and taken by 6.18; 7.1 was the first to look at the fields of
// instructions before it follows the code ("bpf: Move checks for reserved fields out of the main pass").
func (e *evaluation) cast(u *use) {
	if u.newer.Group != bpfprog.GroupArena || e.o.hasArena() {
		return
	}
	f := Finding{Status: Fails, Topic: TopicInsn, Subject: u.newer.Name, Reason: "the object has no arena", Source: e.o.Source(u.at)}
	if e.k.has(linux(7, 1)) == present {
		e.addInsn(f)
		return
	}
	e.absent = append(e.absent, absence{at: u.at, f: f})
}

func (o *Object) hasArena() bool {
	return slices.ContainsFunc(o.Maps, func(m bpfprog.Map) bool { return m.Type == mapArena })
}

// addInsn adds a finding about an instruction. Of a kind that a program has
// many of, the first that is worst is enough.
func (e *evaluation) addInsn(f Finding) {
	for i := range e.out {
		if o := &e.out[i]; o.Topic == TopicInsn && o.Subject == f.Subject {
			if f.Status > o.Status {
				*o = f
			}
			return
		}
	}
	e.add(f)
}
