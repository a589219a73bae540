// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/btfgen/btfgen/pkg/relo"
)

// compareLogs compares libbpf's logs of one object on both BTFs.
func compareLogs(k *Kernel, full, small *relo.Log) {
	k.Records += len(full.Entries)
	for i := range full.Entries {
		f, s := &full.Entries[i], &small.Entries[i]
		d := difference(f, Libbpf)
		d.What, d.Full, d.Minimized = WhatDecision, decision(f), decision(s)
		if d.Full == d.Minimized {
			d.What, d.Full, d.Minimized = WhatCandidates, matches(f), matches(s)
		}
		if d.Full != d.Minimized {
			k.differ(d)
		}
	}
}

func difference(e *relo.Entry, loader string) Difference {
	return Difference{
		Kernel: e.Kernel, Loader: loader, Object: e.Object, Program: cmp.Or(e.Program, e.Section),
		Section: e.Section, Index: e.Index, Relocation: e.Relocation(),
	}
}

// decision returns the result, value and target of an entry as text. It leaves out what legitimately differs: type IDs, the
// target's indices, which shift when members are dropped, and reasons, since dropped candidates turn "no matching candidate"
// into "no candidate".
func decision(e *relo.Entry) string {
	text := e.Result.String()
	if e.New != nil && e.Kind != relo.TargetTypeID {
		text += fmt.Sprintf(" %d → %d", e.Old, *e.New)
	}
	if e.Target != nil {
		text += " at " + where(e.Kind, e.Target)
	}
	return text
}

// matches lists the candidates that match, without duplicates unless the relocation is for a type ID.
func matches(e *relo.Entry) string {
	ids := e.Kind == relo.TargetTypeID
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

// where returns the name and offset of a spec.
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
