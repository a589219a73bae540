// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"testing"

	"github.com/btfgen/btfgen/pkg/relo"
)

// TestSameDecision compares entries that differ in one field or more. Those with the same decision have the same text, and those that
// differ only in what a decision leaves out are the same.
func TestSameDecision(t *testing.T) {
	number := func(n uint64) *uint64 { return &n }
	offset := func(n uint32) *uint32 { return &n }
	targets := []*relo.Spec{
		nil,
		{TypeID: 1, Type: "struct a", Raw: "0:1", Path: "b", Offset: offset(8)},
		{TypeID: 2, Type: "struct a", Raw: "0:7", Path: "b", Offset: offset(8)},
		{Type: "struct c", Path: "b", Offset: offset(8)},
		{Type: "struct a", Path: "c", Offset: offset(8)},
		{Type: "struct a", Path: "b", Offset: offset(9)},
		{Type: "struct a", Path: "b"},
		{Type: "struct a", Path: "b", Offset: offset(8), BitOffset: offset(65)},
		{Type: "struct a", Path: "b", Offset: offset(8), BitOffset: offset(66)},
	}
	var all []*relo.Entry
	for _, kind := range []relo.Kind{relo.ByteOffset, relo.TargetTypeID} {
		for _, result := range []relo.Result{relo.Resolved, relo.Poisoned} {
			for _, value := range []*uint64{nil, number(0), number(8)} {
				for _, target := range targets {
					all = append(all, &relo.Entry{Kind: kind, Result: result, Old: 4, New: value, Target: target})
				}
			}
		}
	}
	for _, a := range all {
		for _, b := range all {
			if a.Kind != b.Kind {
				continue
			}
			if sameDecision(a, b) && decision(a) != decision(b) {
				t.Errorf("%s and %s are the same", decision(a), decision(b))
			}
			if a.Result == b.Result && a.New == b.New && a.Target != nil && b.Target != nil && a.Target.TypeID*b.Target.TypeID == 2 && !sameDecision(a, b) {
				t.Errorf("%s and %s are different", decision(a), decision(b))
			}
		}
	}
}
