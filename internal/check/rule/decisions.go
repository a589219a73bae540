// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Decisions are libbpf's, or aya's, on each record of one object on one kernel, nil if the object
// is not for the kernel.
type Decisions []*core.Decision

// value is what the loader writes for a record; false where it writes nothing,
// or an invalid instruction.
func (d Decisions) value(i int) (uint64, bool) { return d[i].New, d[i].Result.OK() }

// outcome says whether the loader makes the instruction of a record invalid, or
// refuses the object, and why.
func (d Decisions) outcome(i int) (poisoned, refused bool, reason relo.Reason) {
	switch d[i].Result {
	case relo.Poisoned:
		return true, false, d[i].Reason()
	case relo.Ambiguous: // whichever values they have
		return false, true, relo.Reason{Code: d[i].Reason().Code}
	case relo.Error:
		return false, true, d[i].Reason()
	}
	return false, false, relo.Reason{}
}

// enough are modules, each enough by itself for a record to resolve, none if it does not need one.
func (p *Pairing) enough(record int) []string {
	names := p.WithModules.Modules(record)
	if p.Together != nil && len(names) > 0 {
		if all := p.Together[record].Disagreeing(); all != nil {
			names = all
		}
	}
	return names[:min(len(names), someModules)]
}

// disagreements adds a finding for each record of a program that is ambiguous where all modules are loaded.
func (e *Evaluation) disagreements() {
	if e.Together == nil {
		return
	}
	for _, r := range e.pr.Records {
		if names := e.Together[r].Disagreeing(); names != nil {
			_, _, reason := e.Together.outcome(r)
			f := e.o.records.finding(r, MayFail, reason)
			f.Names, f.When, f.Stops = NamesOf(names[:min(len(names), someModules)]), Together, ObjectStops
			e.add(f)
		}
	}
}

// Modules are some of those that have what a record resolves to, for libbpf or only for cilium/ebpf. There are none if it is in vmlinux or
// does not resolve.
func (d Decisions) Modules(i int) []string {
	names := d[i].HiddenIn()
	if d[i].Result.OK() {
		names = d[i].Modules()
	}
	return names[:min(len(names), someModules)]
}

// someModules is how many modules are named of those that have a type.
const someModules = 3

// NeedAny reports whether any record resolves to what only modules have.
func (d Decisions) NeedAny() bool {
	for i := range d {
		if len(d.Modules(i)) > 0 {
			return true
		}
	}
	return false
}

// ModulesOf are some of the modules that have what records resolve to, in order.
func (p *Pairing) ModulesOf(records []int) []string {
	var names []string
	for _, i := range records {
		if p.WithModules != nil {
			names = append(names, p.enough(i)...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), someModules)]
}
