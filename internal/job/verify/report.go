// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/btfgen/btfgen/internal/check/rule"
	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
)

// The values of Difference.Loader.
const (
	Libbpf = "libbpf"
	Cilium = "ebpf-go"
	Aya    = "aya"
)

// The values of Difference.What.
const (
	WhatDecision = "decision" // what the loader does
	WhatTable    = "match"    // the matching candidates, and how they match
)

// Difference is a relocation on which the minimized and the full BTF differ.
type Difference struct {
	Class      string `json:"class"` // "different"
	Message    string `json:"message"`
	Kernel     string `json:"kernel"`
	Loader     string `json:"loader"`
	Object     string `json:"object"`
	Program    string `json:"program"` // the loaded program for cilium/ebpf; the function with the instruction for libbpf
	Section    string `json:"section"`
	Index      int    `json:"index"` // index in the relocation log
	Relocation string `json:"relocation"`
	What       string `json:"what"`
	Full       string `json:"full"`
	Minimized  string `json:"minimized"`
}

// Comparison is the result for one kernel.
type Comparison struct {
	Name        string
	Minimized   string // name of the minimized BTF
	Records     int    // compared for libbpf
	Fixups      int    // compared for cilium/ebpf
	Aya         int    // compared for aya
	Differences []Difference
}

func (k *Comparison) differ(d Difference) {
	d.Class, d.Message = "different", fmt.Sprintf("%s: %s of %s", d.Loader, d.What, d.Relocation)
	k.Differences = append(k.Differences, d)
}

// Report is the result of a run.
type Report struct {
	Kernels []Comparison // sorted by name

	NotMinimized []string        // kernels without minimized BTF
	NoObject     []string        // kernels that no object is for
	NoKernel     []string        // minimized BTFs whose kernel is not in the corpus
	Skipped      []*corpus.Error // read errors, and objects that no kernel is for

	Notes []Note // limits of the comparison with cilium/ebpf
}

// Note describes what could not be checked for cilium/ebpf.
type Note struct {
	Object  string `json:"object"`
	Reason  string `json:"reason,omitempty"` // why its loader refuses the object, or ""
	Records int    `json:"records"`          // not compared by its rules

	Unread rule.Finding `json:"-"` // set if its loader refuses the object for one of several reasons; Reason is then any of these
}

// sort makes the order of the report independent of timing.
func (r *Report) sort() {
	sort.Slice(r.Kernels, func(i, j int) bool { // slices.SortFunc would take 15 kB of the program
		a, b := &r.Kernels[i], &r.Kernels[j]
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Minimized, b.Minimized)) < 0
	})
	slices.Sort(r.NotMinimized)
	slices.Sort(r.NoObject)
	slices.Sort(r.NoKernel)
	slices.SortFunc(r.Skipped, (*corpus.Error).Compare)
}

// JSON writes a line for each difference.
func (r *Report) JSON(w io.Writer) (err error) {
	enc := escape.JSON(w)
	for _, k := range r.Kernels {
		for _, d := range k.Differences {
			err = cmp.Or(err, enc.Encode(d))
		}
	}
	return err
}

// maxShown is how many differences of a kernel, and kernels without counterpart, are listed without verbose. The BTF of a wrong kernel has
// thousands of differences, and an archive that is compared with one kernel may have thousands of kernels.
const maxShown = 10

// Text writes the findings for people. verbose lists all of them.
func (r *Report) Text(w io.Writer, verbose bool) {
	for _, k := range r.Kernels {
		if len(k.Differences) == 0 {
			continue
		}
		escape.Fprintf(w, "%s: %s\n", k.Name, words.Plural(len(k.Differences), "difference"))
		for j, d := range k.Differences {
			if j == maxShown && !verbose {
				escape.Fprintf(w, "  and %d more (--verbose lists them)\n", len(k.Differences)-maxShown)
				break
			}
			place := ""
			if d.Object != "" {
				place = fmt.Sprintf(" in %s %s (%s #%d)", d.Object, d.Program, d.Section, d.Index)
			}
			escape.Fprintf(w, "  %s%s\n    full       %s\n    minimized  %s\n", d.Message, place, d.Full, d.Minimized)
		}
	}
	list := func(names []string, what string) {
		for i, n := range names {
			if i == maxShown && !verbose {
				escape.Fprintf(w, "and %d more: %s (--verbose lists them)\n", len(names)-maxShown, what)
				break
			}
			escape.Fprintf(w, "%s: %s\n", n, what)
		}
	}
	list(r.NotMinimized, "no minimized BTF")
	list(r.NoKernel, "minimized, but not among the kernels")
}

// Why returns why relocations were not compared, for notes with a reason.
func (n *Note) Why() string {
	return fmt.Sprintf("not compared for ebpf-go (%s): %s", words.Plural(n.Records, "relocation"), n.Reason)
}

// Text returns a note without a reason as a sentence.
func (n *Note) Text() string {
	return fmt.Sprintf("%s: %s in no program that ebpf-go would load", n.Object, words.Plural(n.Records, "record"))
}

// Summary has the number of comparisons, and what could not be compared.
type Summary struct {
	Kernels     int    `json:"kernels"`
	Records     int    `json:"libbpf_decisions"`
	Fixups      int    `json:"cilium_decisions"`
	Aya         int    `json:"aya_decisions"`
	Differences int    `json:"differences"`
	Notes       []Note `json:"notes"`
}

// Summary returns the summary of the report.
func (r *Report) Summary() *Summary {
	s := &Summary{Kernels: len(r.Kernels), Notes: append([]Note{}, r.Notes...)}
	for _, k := range r.Kernels {
		s.Records, s.Fixups, s.Aya = s.Records+k.Records, s.Fixups+k.Fixups, s.Aya+k.Aya
		s.Differences += len(k.Differences)
	}
	return s
}

// String returns the summary in a line.
func (s *Summary) String() string {
	return fmt.Sprintf("%s: %d decisions of libbpf, %d of ebpf-go and %d of aya compared, %s",
		words.Plural(s.Kernels, "kernel"), s.Records, s.Fixups, s.Aya, words.Plural(s.Differences, "difference"))
}
