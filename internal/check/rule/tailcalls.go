// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"github.com/cilium/ebpf"

	"github.com/btfgen/btfgen/internal/bpfobj"
)

// TailCalled reports whether the object shows that only tail calls reach its program i: loaders load it and do not attach it. A program array
// has it as an initial value, a program outside that array refers to the array, and its section names no target, without
// which libbpf attaches nothing and ebpf-go leaves the target to the tool.
func (o *Object) TailCalled(i int) bool { return i < len(o.tailOnly) && o.tailOnly[i] }

// findTailCalled returns by program what TailCalled does.
func (o *Object) findTailCalled() []bool {
	only := make([]bool, len(o.Programs))
	for m := range o.Maps {
		members := o.Maps[m].Funcs
		if len(members) == 0 {
			continue
		}
		isMember := func(i int) bool { return slices.Contains(members, o.Programs[i].Fn) }
		entered := false
		for i := range o.Programs {
			entered = entered || o.refers[i][o.Maps[m].Name] && !isMember(i)
		}
		for i := range o.Programs {
			only[i] = only[i] || entered && isMember(i) && namesNoTarget(&o.Programs[i])
		}
	}
	return only
}

// namesNoTarget reports whether the section of a program names nothing to attach it to, or a placeholder.
func namesNoTarget(pr *bpfobj.Program) bool {
	if pr.Attach == nil {
		return false
	}
	to := pr.Attach.Target(pr.Section)
	return to == "" || isPlaceholder(to)
}

// HasTailCalls reports whether programs of the object may make tail calls: it has a program array.
func (o *Object) HasTailCalls() bool {
	return slices.ContainsFunc(o.Maps, func(m bpfobj.Map) bool { return ebpf.MapType(m.Type) == ebpf.ProgramArray })
}
