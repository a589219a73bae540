// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/flow"
)

// maxInsns is how many instructions a program may have before Linux 5.2 (BPF_MAXINSNS). How many verifiers process of more is worth a note.
const maxInsns = 4096

// insns returns how many instructions a program has in all its functions, those of 16 bytes counted twice.
func (o *Object) insns(pr *bpfobj.Program) (n int) {
	for _, fn := range pr.Funcs {
		n += len(o.Funcs[fn].Insns)
	}
	return n
}

// findUnjudged notes on what verdicts on a program do not rest, although kernels differ in it: the bounds of computed offsets, and how many
// instructions verifiers process.
func (o *Object) findUnjudged(pr *bpfobj.Program, all []flow.Access) (notes []Finding) {
	bounds := Finding{Code: UnjudgedBounds, Subject: "bounds of accesses"}
	for i := range all {
		if all[i].Kind != flow.Summed {
			continue
		}
		if bounds.Count++; bounds.Source == "" {
			bounds.Source = o.Source(all[i].At)
		}
	}
	work := Finding{Code: UnjudgedWork, Subject: "processed instructions", Args: Args{Size: int64(o.insns(pr))}}
	for _, fn := range pr.Funcs {
		for i := range o.uses[fn] {
			if u := &o.uses[fn][i]; slices.Contains(u.facts, facts.Loops) {
				if work.Count++; work.Source == "" {
					work.Source = o.Source(u.at)
				}
			}
		}
	}
	if bounds.Count > 0 {
		notes = append(notes, bounds)
	}
	if work.Count > 0 || work.Size > maxInsns {
		notes = append(notes, work)
	}
	return notes
}
