// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/btfgen/btfgen/internal/text/escape"
	"github.com/btfgen/btfgen/internal/text/words"
	"github.com/btfgen/btfgen/pkg/relo"
)

// Summary describes a run. Its JSON form is stable; fields are only added.
type Summary struct {
	Output   string           `json:"output"`
	Kernels  int              `json:"kernels"`
	Reused   int              `json:"reused"`   // results of an earlier run
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

// PrintUnmatched prints the patterns that match no type on some kernels.
func (r *Report) PrintUnmatched(w io.Writer, verbose bool) {
	for _, u := range r.Unmatched[len(r.NeverMatched()):] {
		escape.Fprintf(w, "--keep %s: no such type on %s\n", u.Pattern, words.Kernels(u.Kernels, len(r.Kernels), verbose))
	}
}

// PrintPoisoned prints how many relocations are poisoned or, with verbose, all of them with their kernels and objects.
func (s *Summary) PrintPoisoned(w io.Writer, verbose bool) {
	all := slices.DeleteFunc(slices.Clone(s.Unresolved), func(u Unresolved) bool { return u.Result != relo.Poisoned })
	if len(all) == 0 {
		return
	}
	if !verbose {
		escape.Fprintf(w, "poisoned: %s (-v lists them; 'btfgen check' shows whether a program reaches them)\n", words.Plural(len(all), "relocation"))
		return
	}
	escape.Fprintf(w, "poisoned ('btfgen check' shows whether a program reaches them):\n")
	tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	// A row is a field, type or enumerator that the same kernels lack, with all relocations that use it.
	for _, row := range words.Group(all, func(u *Unresolved) any {
		_, what, _ := strings.Cut(u.Relo, " ")
		return strings.Join(append([]string{what}, u.Kernels...), "\x00")
	}) {
		var kinds, objects []string
		for _, u := range row {
			kind, _, _ := strings.Cut(u.Relo, " ")
			kinds, objects = append(kinds, kind), append(objects, u.Object)
		}
		slices.Sort(kinds)
		slices.Sort(objects)
		_, what, _ := strings.Cut(row[0].Relo, " ")
		escape.Fprintf(tw, "  %s\t%s\t%s\t%s\n", what, strings.Join(slices.Compact(kinds), ","),
			words.Names(slices.Compact(objects), true), words.Kernels(row[0].Kernels, s.Kernels, true))
	}
	tw.Flush()
}
