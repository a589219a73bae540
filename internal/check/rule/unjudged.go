// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"slices"

	"github.com/btfgen/btfgen/internal/bpfobj"
	"github.com/btfgen/btfgen/internal/check/facts"
	"github.com/btfgen/btfgen/internal/check/flow"
)

// manyInsns is how many instructions a program may have before how many of them verifiers process is worth a note: the limit before Linux 5.2
// (BPF_MAXINSNS).
const manyInsns = 4096

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
	work := Finding{Code: UnjudgedWork, Subject: "processed instructions"}
	for _, fn := range pr.Funcs {
		work.Size += int64(len(o.Funcs[fn].Insns))
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
	if work.Count > 0 || work.Size > manyInsns {
		notes = append(notes, work)
	}
	return notes
}
