// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/btfgen/btfgen/internal/core"
	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Summary describes a run. Its JSON form is stable; fields are only added.
type Summary struct {
	Output   string           `json:"output"`
	Kernels  int              `json:"kernels"`
	Reused   int              `json:"reused"`   // from an earlier run
	Distinct int              `json:"distinct"` // minimized BTFs
	Disk     int64            `json:"bytes_on_disk"`
	In       int64            `json:"bytes_in"`  // BTF of the kernels
	Out      int64            `json:"bytes_out"` // minimized BTF
	Written  int64            `json:"bytes_written"`
	Seconds  float64          `json:"seconds"`
	Stages   map[string]int64 `json:"stage_ns"` // summed over all workers

	Unresolved []Unresolved `json:"unresolved"`
	Unmatched  []Unmatched  `json:"keep_unmatched"` // patterns of --keep
}

// Unmatched is a pattern of --keep that matches no type on some kernels.
type Unmatched struct {
	Pattern string   `json:"pattern"`
	Kernels []string `json:"kernels"`
}

// Summarize returns the summary of a run that wrote some bytes to out and took the given time.
func Summarize(out string, written int64, rep *Report, took time.Duration) *Summary {
	s := &Summary{
		Output: out, Written: written, Kernels: len(rep.Kernels), Seconds: took.Seconds(), Stages: make(map[string]int64),
		Unresolved: append([]Unresolved{}, rep.Unresolved...), Unmatched: append([]Unmatched{}, rep.Unmatched...),
	}
	for name, d := range rep.Stages {
		s.Stages[name] = d.Nanoseconds()
	}
	distinct := make(map[*byte]bool)
	for _, k := range rep.Kernels {
		s.In += k.RawSize
		s.Disk += k.SourceSize
		s.Out += int64(len(k.BTF))
		distinct[&k.BTF[0]] = true
		if k.Reused {
			s.Reused++
		}
	}
	s.Distinct = len(distinct)
	return s
}

// String returns a line with what was written and read.
func (s *Summary) String() string {
	reused := ""
	if s.Reused > 0 {
		reused = fmt.Sprintf(", %d of them reused", s.Reused)
	}
	return fmt.Sprintf("%s: %s%s, %s, %s; from %s of BTF in %s", s.Output, words.Plural(s.Kernels, "kernel"), reused,
		words.Plural(s.Distinct, "distinct layout"), words.Bytes(s.Written), words.Bytes(s.In), time.Duration(s.Seconds*1e9).Round(10*time.Millisecond))
}

// NeverMatched returns the patterns of --keep that match no type of any kernel. Part of a corpus cannot show that.
func (r *Report) NeverMatched() (l []string) {
	for _, u := range r.Unmatched {
		if len(u.Kernels) == len(r.Kernels) && !r.part {
			l = append(l, u.Pattern)
		}
	}
	return l
}

// PrintUnmatched prints which patterns match no type on some kernels, with verbose also on which.
func (r *Report) PrintUnmatched(w io.Writer, verbose bool) {
	some := r.Unmatched[len(r.NeverMatched()):]
	if len(some) == 0 {
		return
	}
	if !verbose {
		escape.Fprintf(w, "--keep: %s without a type on some kernels (-v lists them)\n", words.Plural(len(some), "pattern"))
		return
	}
	escape.Fprintf(w, "--keep, without a type:\n")
	tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	for _, u := range some {
		escape.Fprintf(tw, "  %s\t%s\n", u.Pattern, words.Kernels(u.Kernels, len(r.Kernels), true))
	}
	tw.Flush()
}

// maxRows is how many poisoned relocations are listed without verbose.
const maxRows = 20

// PrintPoisoned prints the poisoned relocations. With verbose it lists all of them, with all kernels and objects. Otherwise it only
// counts those that no kernel needs.
func (s *Summary) PrintPoisoned(w io.Writer, objects []*core.Object, verbose bool) {
	all := s.Unresolved
	if !verbose {
		tests := existenceTests(objects)
		all = slices.DeleteFunc(slices.Clone(all), func(u Unresolved) bool { return u.Result == relo.Poisoned && u.unneeded(tests) })
	}
	list := poisonedRows(all)
	tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	for i, u := range list {
		switch {
		case i == 0 && u.reach == unjudged:
			escape.Fprintf(w, "poisoned ('btfgen check' shows whether a program reaches them):\n")
		case i == 0:
			escape.Fprintf(w, "poisoned, and whether the verifier reaches them:\n")
		}
		if i == maxRows && !verbose {
			escape.Fprintf(tw, "  … and %d more (-v lists all)\n", len(list)-i)
			break
		}
		escape.Fprintf(tw, "  %s%s\t%s\t%s\t%s\n", u.reach, u.what, strings.Join(u.kinds, ","), words.Names(u.objects, verbose), words.Kernels(u.kernels, s.Kernels, verbose))
	}
	tw.Flush()
	if n := len(s.Unresolved) - len(all); n > 0 {
		escape.Fprintf(w, "poisoned: %s of types with a flavor, or of what programs check first (-v lists them)\n", words.Plural(n, "relocation"))
	}
}

// unneeded reports whether programs probably work without a poisoned relocation: it is guarded on all kernels or, if this is unknown, its
// type has a flavor, or its object tests whether the field or type exists.
func (u *Unresolved) unneeded(tests map[string]bool) bool {
	if len(u.Reached)+len(u.Guarded) > 0 {
		return len(u.Guarded) == len(u.Kernels)
	}
	_, what, _ := strings.Cut(u.Relo, " ")
	typ, _, _ := strings.Cut(what, ".")
	return strings.Contains(typ, "___") || tests[u.Object+" "+what] || tests[u.Object+" "+typ]
}

// existenceTests returns the objects with the fields, types and enumerators of which they test the existence.
func existenceTests(objects []*core.Object) map[string]bool {
	tests := make(map[string]bool)
	for _, o := range objects {
		records := o.Records()
		for i := range records {
			if records[i].Kind.IsExistence() {
				_, what, _ := strings.Cut(o.Relocation(&records[i]), " ")
				tests[o.Name()+" "+what] = true
			}
		}
	}
	return tests
}

// The values of poisonedRow.reach: a column of its own if reachability is known.
const (
	unjudged escape.Own = ""
	reached  escape.Own = "reached\t"
	guarded  escape.Own = "guarded\t"
)

// poisonedRow is a field, type or enumerator that the same kernels lack, with all relocations that use it.
type poisonedRow struct {
	reach                   escape.Own
	what                    string
	kinds, objects, kernels []string
}

func poisonedRows(all []Unresolved) (rows []*poisonedRow) {
	at := make(map[string]*poisonedRow)
	add := func(reach escape.Own, u *Unresolved, kernels []string) {
		if len(kernels) == 0 {
			return
		}
		kind, what, _ := strings.Cut(u.Relo, " ")
		key := strings.Join(append([]string{string(reach), what}, kernels...), "\x00")
		row := at[key]
		if row == nil {
			row = &poisonedRow{reach: reach, what: what, kernels: kernels}
			at[key], rows = row, append(rows, row)
		}
		if !slices.Contains(row.kinds, kind) {
			row.kinds = append(row.kinds, kind)
		}
		if !slices.Contains(row.objects, u.Object) {
			row.objects = append(row.objects, u.Object)
		}
	}
	for i := range all {
		switch u := &all[i]; {
		case u.Result != relo.Poisoned:
		case len(u.Reached)+len(u.Guarded) == 0:
			add(unjudged, u, u.Kernels)
		default:
			add(reached, u, u.Reached)
			add(guarded, u, u.Guarded)
		}
	}
	slices.SortStableFunc(rows, func(a, b *poisonedRow) int { return strings.Compare(string(b.reach), string(a.reach)) }) // reached first
	return rows
}
