package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/btfgen/btfgen/internal/corpus"
	"github.com/btfgen/btfgen/internal/foreign"
	"github.com/btfgen/btfgen/internal/generate"
	"github.com/btfgen/btfgen/pkg/relolog"
)

// summary is what a run came to. Its JSON form is stable; fields are only ever
// added.
type summary struct {
	Output   string           `json:"output"`
	Kernels  int              `json:"kernels"`
	Reused   int              `json:"reused"`   // taken over from an earlier run
	Distinct int              `json:"distinct"` // minimized BTFs
	Disk     int64            `json:"bytes_on_disk"`
	In       int64            `json:"bytes_in"`  // BTF of the kernels
	Out      int64            `json:"bytes_out"` // minimized BTF
	Objects  int              `json:"objects_skipped"`
	Seconds  float64          `json:"seconds"`
	Stages   map[string]int64 `json:"stage_ns"` // of all workers together

	Unresolved []generate.Unresolved `json:"unresolved"`
	Skipped    []*corpus.Error       `json:"skipped"`
}

func summarize(out string, rep *generate.Report, badObjects int, took time.Duration) *summary {
	s := &summary{
		Output: out, Kernels: len(rep.Kernels), Objects: badObjects, Seconds: took.Seconds(),
		Unresolved: append([]generate.Unresolved{}, rep.Unresolved...), Skipped: append([]*corpus.Error{}, rep.Skipped...), Stages: make(map[string]int64),
	}
	for _, st := range rep.Stages.All() {
		s.Stages[st.Name] = st.Time.Nanoseconds()
	}
	for _, k := range rep.Kernels {
		s.In += k.RawSize
		s.Disk += k.SourceSize
		if k.Reused {
			s.Reused++
		}
	}
	s.Distinct, s.Out = rep.Distinct()
	return s
}

func (s *summary) json(w io.Writer) error {
	return foreign.JSON(w).Encode(s)
}

// text tells what was left out, what is unresolved and where, and how much was
// written.
func (s *summary) text(w io.Writer, rep *generate.Report, verbose bool) {
	reportSkipped(w, rep.Skipped)
	if len(rep.Unresolved) > 0 {
		foreign.Fprintf(w, "unresolved:\n")
		tw := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
		list := fold(rep.Unresolved)
		for i, u := range list {
			if i == maxRows && !verbose {
				foreign.Fprintf(tw, "  … and %d more (-v lists all)\n", len(list)-i)
				break
			}
			foreign.Fprintf(tw, "  %s\t%s\t%s\t%s\t%s\n", u.result, u.what, strings.Join(u.kinds, ","), some(u.objects, verbose), kernels(u.kernels, len(rep.Kernels), verbose))
		}
		tw.Flush()
	}
	if verbose {
		var parts []string
		for _, st := range rep.Stages.All() {
			parts = append(parts, fmt.Sprintf("%s %s", st.Name, st.Time.Round(100*time.Microsecond)))
		}
		foreign.Fprintf(w, "time of all workers: %s\n", strings.Join(parts, ", "))
	}
	reused := ""
	if s.Reused > 0 {
		reused = fmt.Sprintf(", %d of them as they were", s.Reused)
	}
	foreign.Fprintf(w, "%s: %s%s, %s of BTF (%s on disk) to %s in %s, %s\n", s.Output, plural(s.Kernels, "kernel"), reused,
		size(s.In), size(s.Disk), size(s.Out), plural(s.Distinct, "distinct file"), time.Duration(s.Seconds*1e9).Round(10*time.Millisecond))
}

// folded is a field, type or enumerator that fails on the same kernels,
// whoever asks for it and whatever for.
type folded struct {
	result                  relolog.Result
	what                    string
	kinds, objects, kernels []string
}

func fold(all []generate.Unresolved) []*folded {
	var out []*folded
	at := make(map[string]*folded)
	for _, u := range all {
		kind, what, _ := strings.Cut(u.Relo, " ")
		key := strings.Join(append([]string{string(u.Result), what}, u.Kernels...), "\x00")
		f := at[key]
		if f == nil {
			f = &folded{result: u.Result, what: what, kernels: u.Kernels}
			at[key] = f
			out = append(out, f)
		}
		if !slices.Contains(f.kinds, kind) {
			f.kinds = append(f.kinds, kind)
		}
		if !slices.Contains(f.objects, u.Object) {
			f.objects = append(f.objects, u.Object)
		}
	}
	return out
}

// maxRows is how many unresolved relocations are listed where nobody asked for
// all.
const maxRows = 20

// few is how many names are listed where nobody asked for all.
const few = 2

// some lists names, or the first of them and how many more there are.
func some(names []string, verbose bool) string {
	if verbose || len(names) <= few {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], " "), len(names)-few)
}

// kernels says where something happens.
func kernels(names []string, all int, verbose bool) string {
	if len(names) == all && all > few && !verbose {
		return "all kernels"
	}
	return fmt.Sprintf("%d of %d kernels: %s", len(names), all, some(names, verbose))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// size returns a number of bytes with a decimal unit.
func size(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
