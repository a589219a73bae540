// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"slices"

	"github.com/btfgen/btfgen/internal/corpus"
)

// Loaders, as differences name them.
const (
	Libbpf = "libbpf"
	Cilium = "cilium/ebpf"
	Aya    = "aya"
)

// What two BTFs differ in.
const (
	WhatDecision   = "decision"   // what the loader does
	WhatCandidates = "candidates" // which candidates match, and how
	WhatTable      = "match"      // what a loader would see in a match, besides its value
)

// Difference is a relocation for which the minimized BTF does not give what
// the full one gives.
type Difference struct {
	Kernel     string `json:"kernel"`
	Loader     string `json:"loader"`
	Object     string `json:"object"`
	Program    string `json:"program"` // of cilium/ebpf the one that loads, of libbpf the function of the instruction
	Section    string `json:"section"`
	Index      int    `json:"index"` // as in the relocation log
	Relocation string `json:"relocation"`
	What       string `json:"what"`
	Full       string `json:"full"`
	Minimized  string `json:"minimized"`
}

// Disagreement is a relocation that the two loaders decide differently on the
// full BTF.
type Disagreement struct {
	Kernel     string `json:"kernel"`
	Object     string `json:"object"`
	Program    string `json:"program"` // the one that loads
	Section    string `json:"section"`
	Index      int    `json:"index"`
	Relocation string `json:"relocation"`
	Libbpf     string `json:"libbpf"`
	Cilium     string `json:"cilium"`
}

// Kernel is what was compared on one kernel.
type Kernel struct {
	Name          string
	Minimized     string // name of the minimized BTF
	Records       int    // compared under libbpf's rules
	Fixups        int    // compared under cilium/ebpf's rules
	Aya           int    // compared under aya's rules
	Differences   []Difference
	Disagreements []Disagreement
}

// Report is the outcome of a run.
type Report struct {
	Kernels []Kernel // in order of name

	NotMinimized []string        // kernels that have no minimized BTF
	NoObject     []string        // kernels that no object is for
	NoKernel     []string        // minimized BTFs whose kernel is not in the corpus
	Skipped      []*corpus.Error // what could not be read, and objects that no kernel is for

	Notes []Note // what cilium/ebpf cannot do with the objects
}

// Note tells what cilium/ebpf's rules could not be checked for.
type Note struct {
	Object  string `json:"object"`
	Reason  string `json:"reason,omitempty"` // why its loader refuses the object, or ""
	Records int    `json:"records"`          // in no program that it would load
}

// sort puts the report in an order that does not depend on timing.
func (r *Report) sort() {
	slices.SortFunc(r.Kernels, func(a, b Kernel) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Minimized, b.Minimized))
	})
	slices.Sort(r.NotMinimized)
	slices.Sort(r.NoObject)
	slices.Sort(r.NoKernel)
	slices.SortFunc(r.Skipped, (*corpus.Error).Compare)
}
