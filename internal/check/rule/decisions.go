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
	case relo.Ambiguous: // the reason without the values of the candidates
		return false, true, relo.Reason{Code: d[i].Reason().Code}
	case relo.Error:
		return false, true, d[i].Reason()
	}
	return false, false, relo.Reason{}
}

// outcome returns what the loader does with a record. The decisions are those of libbpf: ebpfGoLinked adds where
// cilium/ebpf decides otherwise, and ayaRefusal the records that aya refuses.
func (s *Scene) outcome(r int) (poisoned, refused bool, reason relo.Reason) {
	poisoned, refused, reason = s.decisions.outcome(r)
	switch s.loader {
	case EbpfGo:
		refused = refused && !s.decidesAlone(r)
	case Aya:
		refused = false
	}
	return poisoned && (s.loader == Libbpf || !s.onlyLibbpf(r)), refused, reason
}

// onlyLibbpf reports whether only libbpf makes the instruction of a record invalid that does not resolve for it:
// cilium/ebpf leaves the width of an access alone, and finds types of modules that vmlinux hides from libbpf.
func (s *Scene) onlyLibbpf(r int) bool {
	return s.decisions[r].Unresizable() || len(s.decisions[r].HiddenIn()) > 0
}

// decidesAlone reports whether libbpf finds a record ambiguous, and cilium/ebpf decides it by itself, with the other
// records of a program.
func (s *Scene) decidesAlone(r int) bool {
	return s.Linked != nil && s.decisions[r].Result == relo.Ambiguous
}

// enough are modules, each enough by itself for a record to resolve, none if it does not need one.
func (s *Scene) enough(record int) []string {
	names := s.WithModules.Modules(record)
	if s.Together != nil && len(names) > 0 {
		if all := s.Together[record].Disagreeing(); all != nil {
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
			f.Names, f.When, f.Stops = NamesOf(names[:min(len(names), someModules)]), Together, e.loader.stops()
			e.add(f)
		}
	}
}

// Modules returns some of the modules with the target of a record, for libbpf or only for cilium/ebpf. There are none
// if the target is in vmlinux or the record does not resolve.
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
func (c Scenes) ModulesOf(records []int) []string {
	var names []string
	s := c[0]
	for _, i := range records {
		if s.WithModules != nil {
			names = append(names, s.enough(i)...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), someModules)]
}
