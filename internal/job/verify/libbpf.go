// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/pkg/relo"
)

// decision is what two BTFs must agree upon for one record, as text.
type decision struct {
	outcome string // result, value and target
	matches string // the candidates that match
}

// decide reduces an entry to what a loader with libbpf's rules sees of it.
// Type IDs are left out, and the indices of the target's spec, because
// dropped members shift them. So are reasons: that candidates which do not
// match are gone changes "no matching candidate" into "no candidate".
func decide(e *relo.Entry) decision {
	ids := e.Kind == relo.TargetTypeID
	var b strings.Builder
	b.WriteString(e.Result.String())
	if e.New != nil && !ids {
		b.WriteString(fmt.Sprintf(" %d → %d", e.Old, *e.New))
	}
	if e.Target != nil {
		b.WriteString(" at " + where(e.Kind, e.Target))
	}
	return decision{b.String(), matches(e, ids)}
}

// matches lists the candidates that match, equal ones once.
func matches(e *relo.Entry, ids bool) string {
	var all []string
	for i := range e.Candidates {
		c := &e.Candidates[i]
		if !c.Match {
			continue
		}
		s := where(e.Kind, &c.Spec)
		if !ids && c.Value != nil {
			s += fmt.Sprintf(" = %d", *c.Value)
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	if !ids {
		all = slices.Compact(all)
	}
	return strings.Join(all, ", ")
}

// where names the place that a spec leads to.
func where(kind relo.Kind, s *relo.Spec) string {
	out := s.Name(kind)
	switch {
	case s.BitOffset != nil:
		return fmt.Sprintf("%s @ bit %d", out, *s.BitOffset)
	case s.Offset != nil:
		return fmt.Sprintf("%s @ %d", out, *s.Offset)
	}
	return out
}

// compareLogs reports the records on which two logs of one object differ.
func compareLogs(full, small *relo.Log, report func(Difference)) {
	for i := range full.Entries {
		f, s := &full.Entries[i], &small.Entries[i]
		df, ds := decide(f), decide(s)
		d := difference(f, Libbpf)
		switch {
		case df.outcome != ds.outcome:
			d.What, d.Full, d.Minimized = WhatDecision, df.outcome, ds.outcome
		case df.matches != ds.matches:
			d.What, d.Full, d.Minimized = WhatCandidates, df.matches, ds.matches
		default:
			continue
		}
		report(d)
	}
}

func difference(e *relo.Entry, loader string) Difference {
	return Difference{
		Kernel: e.Kernel, Loader: loader, Object: e.Object, Program: cmp.Or(e.Program, e.Section),
		Section: e.Section, Index: e.Index, Relocation: e.Relocation(),
	}
}

// loadersDiffer compares libbpf's decision on a record with cilium/ebpf's
// fixup, both on the full BTF.
func loadersDiffer(e *relo.Entry, f *fixups, i int) bool {
	if f.err != nil {
		return e.Result != relo.Ambiguous && e.Result != relo.Error
	}
	switch e.Result {
	case relo.Resolved, relo.Absent:
		local, target, ok := values(f.texts[i])
		shift := (e.Kind == relo.LShiftU64 || e.Kind == relo.RShiftU64) // cilium/ebpf does not calculate the local side
		return !ok || e.New == nil || target != *e.New || local != e.Old && !shift
	case relo.Poisoned:
		return !isPoison(f.texts[i])
	}
	return true // libbpf refuses to load, cilium/ebpf does not
}
