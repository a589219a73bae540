// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"fmt"

	"github.com/btfgen/btfgen/internal/btf"
	"github.com/btfgen/btfgen/pkg/relo"
)

// compareLogs compares libbpf's logs of one object on both BTFs.
func compareLogs(k *Comparison, full, small *relo.Log) {
	k.Records += len(full.Entries)
	for i := range full.Entries {
		f, s := &full.Entries[i], &small.Entries[i]
		if sameDecision(f, s) {
			continue
		}
		d := difference(f, Libbpf)
		if d.What, d.Full, d.Minimized = WhatDecision, decision(f), decision(s); d.Full != d.Minimized {
			k.differ(d)
		}
	}
}

// sameDecision reports whether two entries of a record are known to have the same decision. It does not make texts, which takes most of the time.
// It returns false if only the texts can show that.
func sameDecision(a, b *relo.Entry) bool {
	if a.Result != b.Result || a.Old != b.Old || (a.Target == nil) != (b.Target == nil) {
		return false
	}
	if a.Kind != relo.TargetTypeID && !equal(a.New, b.New) {
		return false
	}
	s, t := a.Target, b.Target
	return s == nil || s.Type == t.Type && s.Path == t.Path && equal(s.Offset, t.Offset) && equal(s.BitOffset, t.BitOffset)
}

// equal reports whether two pointers are nil, or both point to the same value.
func equal[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func difference(e *relo.Entry, loader string) Difference {
	return Difference{
		Kernel: e.Kernel, Loader: loader, Object: e.Object, Program: cmp.Or(e.Program, e.Section),
		Section: e.Section, Index: e.Index, Relocation: e.Relocation(),
	}
}

// decision returns the result, value and target of an entry as text. It leaves out what legitimately differs: type IDs, the
// target's indices, which shift when members are dropped, its flavor, and reasons, since dropped candidates turn "no matching
// candidate" into "no candidate".
func decision(e *relo.Entry) string {
	text := e.Result.String()
	if e.New != nil && e.Kind != relo.TargetTypeID {
		text += fmt.Sprintf(" %d → %d", e.Old, *e.New)
	}
	if t := e.Target; t != nil {
		text += " at " + relo.Name(e.Kind, btf.Agreed(t.Type), t.Path)
		switch {
		case t.BitOffset != nil:
			text += fmt.Sprintf(" @ bit %d", *t.BitOffset)
		case t.Offset != nil:
			text += fmt.Sprintf(" @ %d", *t.Offset)
		}
	}
	return text
}
